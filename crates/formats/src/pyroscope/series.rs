//! Who sent a profile, from the labels of a Pyroscope series.
//!
//! A series is an application with labels, `app{region=eu,version=3}`. Some labels mean what the model has a place for:
//!
//! | label | becomes |
//! |---|---|
//! | `__name__` | the profile's name |
//! | `service_name`; without it the application's name | `service.name`; the application is then `app_name` |
//! | `otel.scope.name`, `otel.scope.version` | the scope: which profiler made it |
//! | `span_id`, `trace_id` and the other keys of [`links`] | the link of every sample that has none of its own |
//! | `__session_id__` | kept: it tells two processes of one application apart |
//! | others that begin with `__` | left out: they are Pyroscope's own |
//! | all others | resource attributes |

use std::sync::Arc;

use spanflame_model::{Attributes, Batch, Label, Link, ProfileInfo, Resource, Scope};

use crate::{Limits, Reason, links};

/// Longest name of an application or profile in bytes.
const NAME_BYTES_MAX: usize = 1024;

/// Most bytes of the labels of one series: they are stored with every profile of it.
const LABEL_BYTES_MAX: usize = 64 << 10;

/// The labels of a series, as sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    app: String,
    labels: Vec<(String, String)>,
}

/// What the labels of a series say about each of its profiles.
#[derive(Clone, Debug)]
pub struct Identity {
    /// What the sender calls the profile; empty if it says nothing.
    pub name: String,
    /// Who made it.
    pub resource: Arc<Resource>,
    /// Which profiler made it.
    pub scope: Arc<Scope>,
    /// Ids among the labels, which hold for every sample.
    ids: Vec<Label>,
}

impl Series {
    /// Reads `app{key=value,key=value}`. Values are not quoted, so they hold neither `,` nor `}`. Fails with what is
    /// wrong.
    pub fn from_name(text: &str) -> Result<Series, String> {
        let text = text.trim();
        let shown = || text.chars().take(200).collect::<String>();
        let (app, labels) = match text.split_once('{') {
            None => (text, ""),
            Some((app, rest)) => {
                let labels = rest.strip_suffix('}');
                (
                    app.trim(),
                    labels.ok_or_else(|| format!("name is {:?}, expected a }} at its end", shown()))?,
                )
            }
        };
        if app.is_empty() || app.len() > NAME_BYTES_MAX || app.chars().any(char::is_control) {
            return Err(format!(
                "name is {:?}, expected an application of 1 to {NAME_BYTES_MAX} bytes, then labels as in app{{region=eu}}",
                shown()
            ));
        }
        let mut series = Series {
            app: app.to_owned(),
            labels: Vec::new(),
        };
        for pair in labels.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(|| {
                format!(
                    "name has the label {:?}, expected key=value",
                    pair.chars().take(200).collect::<String>()
                )
            })?;
            series.push(key.trim(), value.trim());
        }
        Ok(series)
    }

    /// The application's name; empty for a series that has only labels.
    pub fn app(&self) -> &str {
        &self.app
    }

    /// Gives the application another name.
    pub fn set_app(&mut self, app: &str) {
        app.clone_into(&mut self.app);
    }

    /// Adds a label; one without a key says nothing.
    pub fn push(&mut self, key: &str, value: &str) {
        if !key.is_empty() {
            self.labels.push((key.to_owned(), value.to_owned()));
        }
    }

    /// What the labels mean. Fails if there are more or longer ones than `limits` and this module allow.
    pub fn identity(self, limits: &Limits) -> Result<Identity, Reason> {
        let bytes: usize = self.labels.iter().map(|(key, value)| key.len() + value.len()).sum();
        if bytes > LABEL_BYTES_MAX || self.labels.len() > limits.attribute_count_max {
            return Err(Reason::TooManyAttributes);
        }
        let (mut name, mut scope, mut ids) = (String::new(), Scope::default(), Vec::new());
        let mut attributes = Attributes::new();
        for (key, value) in self.labels {
            match key.as_str() {
                "__name__" => name = value,
                "service_name" => attributes.insert("service.name", value),
                "otel.scope.name" => scope.name = value,
                "otel.scope.version" => scope.version = value,
                key if links::is_id(key) => ids.push(Label {
                    key: key.to_owned(),
                    value: value.into(),
                    unit: String::new(),
                }),
                key if key.starts_with("__") && key != "__session_id__" => {}
                _ => attributes.insert(key, value),
            }
        }
        if !self.app.is_empty() {
            let key = match attributes.get_str("service.name") {
                None | Some("") => "service.name",
                Some(_) => "app_name",
            };
            attributes.insert(key, self.app);
        }
        crate::rejects::cut(&mut name, NAME_BYTES_MAX);
        Ok(Identity {
            name,
            resource: Arc::new(Resource::new(attributes)),
            scope: Arc::new(scope),
            ids,
        })
    }
}

impl Identity {
    /// Makes every profile of `batch` one of this series. A name that a profile has already stays.
    pub fn apply(&self, batch: &mut Batch) {
        let link = links::from_labels(&self.ids);
        for profile in &mut batch.profiles {
            let info: &mut ProfileInfo = Arc::make_mut(&mut profile.info);
            info.resource = Arc::clone(&self.resource);
            info.scope = Arc::clone(&self.scope);
            if info.name.is_empty() {
                info.name.clone_from(&self.name);
            }
            if link != Link::None {
                let unlinked = profile.samples.iter_mut().filter(|sample| sample.link == Link::None);
                unlinked.for_each(|sample| sample.link = link.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, service: &str, expected: &[(&str, &str)]) -> Identity {
        let series = Series::from_name(name).expect("a name");
        let identity = series.identity(&Limits::default()).expect("few labels");
        assert_eq!(identity.resource.service(), service);
        let attributes = identity.resource.attributes();
        let found: Vec<(&str, &str)> = attributes.iter().filter_map(|(key, value)| Some((key, value.as_str()?))).collect();
        assert_eq!(found, expected);
        identity
    }

    #[test]
    fn the_application_is_the_service_unless_a_label_names_it() {
        check("shop", "shop", &[("service.name", "shop")]);
        check(
            "shop.cpu{service_name=cart, region = eu-1}",
            "cart",
            &[("app_name", "shop.cpu"), ("region", "eu-1"), ("service.name", "cart")],
        );
    }

    #[test]
    fn labels_of_pyroscope_itself_are_left_out_but_the_session() {
        let name = "a{__session_id__=1f,__delta__=false,otel.scope.name=com.grafana.pyroscope/go,otel.scope.version=v1,__name__=wall}";
        let identity = check(name, "a", &[("__session_id__", "1f"), ("service.name", "a")]);
        assert_eq!(
            (identity.name.as_str(), identity.scope.name.as_str()),
            ("wall", "com.grafana.pyroscope/go")
        );
        assert_eq!(identity.scope.version, "v1");
    }

    #[test]
    fn ids_among_the_labels_make_no_series() {
        let identity = check(
            "a{span_id=b7ad6b7169203331,profile_id=b7ad6b7169203331}",
            "a",
            &[("service.name", "a")],
        );
        assert_eq!(identity.ids.len(), 2);
    }

    #[test]
    fn names_that_are_none_say_what_was_expected() {
        let refused = |text: &str| Series::from_name(text).expect_err("no name");
        assert!(refused("").contains("expected an application"));
        assert!(refused("a{b=c").contains("expected a }"));
        assert!(refused("a{b}").contains("expected key=value"));
    }

    #[test]
    fn labels_are_bounded() {
        let mut series = Series::from_name("a").expect("a name");
        series.push("k", &"v".repeat(LABEL_BYTES_MAX));
        assert_eq!(
            series.identity(&Limits::default()).expect_err("too long"),
            Reason::TooManyAttributes
        );
    }
}

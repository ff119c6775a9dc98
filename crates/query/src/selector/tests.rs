use spanflame_testkit::{ProfileBuilder, resource};

use super::*;

fn check(selector: &str, expected: bool) {
    let labels = resource("cart", &[("region", "eu-west"), ("a b", "x")]);
    let profile = ProfileBuilder::cpu("cart", 10).resource(&labels).build();
    let selector_text = selector;
    let selector = LabelSelector::parse(selector).expect("parses");
    assert_eq!(selector.selects(&profile.info), expected, "{selector_text}");
}

fn check_error(selector: &str, expected: &str) {
    assert_eq!(LabelSelector::parse(selector).expect_err("does not parse").to_string(), expected);
}

#[test]
fn conditions_are_joined_by_and() {
    check("", true);
    check("{}", true);
    check(r#"{ service.name="cart" }"#, true);
    check(r#"service_name = "cart", region=~"eu-.*","#, true);
    check(r#"{service_name="cart", region!="eu-west"}"#, false);
    check(r#"{"a b"='x', "service.name"!~"pay.*"}"#, true);
}

#[test]
fn regular_expressions_are_anchored() {
    check(r#"{region=~"eu"}"#, false);
    check(r#"{region=~"us-.*|eu-.*"}"#, true);
}

#[test]
fn an_absent_label_is_empty() {
    check(r#"{zone=""}"#, true);
    check(r#"{zone!="a"}"#, true);
    check(r#"{zone=~".+"}"#, false);
}

#[test]
fn the_service_is_known_to_the_scan() {
    let services = |text: &str| LabelSelector::parse(text).expect("parses").services();
    assert_eq!(services(r#"{region="x", service_name="cart"}"#), Some(vec!["cart".to_owned()]));
    assert_eq!(services(r#"{service_name=~"cart"}"#), None);
}

#[test]
fn errors_name_the_column_and_what_is_expected() {
    check_error(r#"{a}"#, "selector has \"}\" in column 3, expected one of = != =~ !~");
    check_error(r#"{a="b"#, "selector has \"\\\"b\" in column 4, expected a closing quote");
    check_error(r#"{a="b" c="d"}"#, "selector has \"c=\\\"d\\\"}\" in column 8, expected `,` or `}`");
    check_error(r#"{a="b"} x"#, "selector has \"x\" in column 9, expected the end");
    assert!(LabelSelector::parse(r#"{a=~"("}"#).is_err());
    assert!(LabelSelector::parse(&"a".repeat(BYTES_MAX + 1)).is_err());
}

use std::sync::Arc;

use spanflame_model::{Attributes, Resource, Scope, SpanEvent, SpanId, SpanKind, SpanLink, StatusCode, Timestamp, TraceId, Value};

use spanflame_testkit::SpanBuilder;

use super::*;

fn span() -> Span {
    let mut attributes: Attributes = [("http.method", "GET"), ("a b", "spaced"), ("plan-id", "gold")]
        .into_iter()
        .collect();
    attributes.insert("http.status_code", 503_i64);
    attributes.insert("ratio", 0.5);
    attributes.insert("retry", true);
    attributes.insert("tags", Value::Array(vec!["red".into(), "blue".into()]));
    let resource: Attributes = [("service.name", "cart"), ("region", "eu-west")].into_iter().collect();
    Span {
        trace_id: TraceId::from_bytes([1; 16]).expect("not zero"),
        span_id: SpanId::from_u64(7).expect("not zero"),
        parent_span_id: None,
        trace_state: String::new(),
        flags: 0,
        name: "POST /checkout".to_owned(),
        kind: SpanKind::Server,
        start: Timestamp::ZERO,
        duration_ns: 250_000_000,
        status: StatusCode::Error,
        status_message: "boom".to_owned(),
        attributes,
        events: Vec::new(),
        links: Vec::new(),
        dropped: [0; 3],
        resource: Arc::new(Resource::new(resource)),
        scope: Arc::new(Scope::default()),
    }
}

fn check(query: &str, expected: bool) {
    let query = Query::parse(query).expect("parses");
    assert_eq!(query.test(&span(), None), Some(expected), "{}", query.text());
}

#[test]
fn ids_are_hex_in_either_case_and_leading_zeros_may_be_left_out() {
    check(r#"{ "7" = span:id && trace:id = "1010101010101010101010101010101" }"#, true);
    let mut upper = span();
    upper.span_id = SpanId::from_bytes([0xab; 8]).expect("not zero");
    let query = Query::parse(r#"{ span:id = "ABABABABABABABAB" }"#).expect("parses");
    assert!(query.test(&upper, None).expect("known"));
    check_error(
        r#"{ span:id = "zz" }"#,
        r#"line 1, column 13: "zz" is no id, expected 1 to 16 hex digits"#,
    );
    check_error(
        r#"{ "" = trace:id }"#,
        r#"line 1, column 3: "" is no id, expected 1 to 32 hex digits"#,
    );
}

fn check_error(query: &str, expected: &str) {
    let error = Query::parse(query).expect_err("does not parse");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn everything_is_selected_by_an_empty_filter() {
    ["", "{}", "{ }", " {\n} ", "{ true }"].iter().for_each(|query| check(query, true));
    check("{ false }", false);
}

#[test]
fn intrinsics_compare_with_their_own_kind() {
    check(r#"{ name = "POST /checkout" }"#, true);
    check("{ status = error && kind = server }", true);
    check("{ status != error || kind = client }", false);
    check("{ duration > 200ms && duration <= 0.25s }", true);
    check("{ duration > 250ms }", false);
    check("{ 1m30s > duration }", true);
    check("{ span:duration >= 250ms && span:name != \"x\" }", true);
    check(
        r#"{ span:id = "0000000000000007" && trace:id = "01010101010101010101010101010101" }"#,
        true,
    );
    check("{ span:parentID = nil }", true);
    check(r#"{ statusMessage =~ "bo+m" }"#, true);
}

#[test]
fn attributes_are_looked_up_in_their_scope() {
    check(r#"{ span.http.method = "GET" }"#, true);
    check(r#"{ resource.http.method = "GET" }"#, false);
    check(r#"{ .http.method = "GET" && .region = "eu-west" }"#, true);
    check(r#"{ resource.service.name = "cart" && .service.name = "cart" }"#, true);
    check(r#"{ span."a b" = "spaced" && span.plan-id = "gold" }"#, true);
}

#[test]
fn numbers_compare_across_kinds() {
    check("{ .http.status_code >= 500 && .http.status_code < 504.5 }", true);
    check("{ .ratio = 0.5 && .ratio < 1 }", true);
    check("{ .http.status_code = \"503\" }", false);
    check("{ .http.status_code = 500 + 3 && .http.status_code - 3 = 5 * 10 ^ 2 }", true);
    check("{ .http.status_code > -1 && -.ratio = -0.5 }", true);
    check("{ .http.status_code % 2 = 1 && .http.status_code / 0 > 1 }", true);
    check("{ .http.status_code > minInt && .http.status_code < maxInt }", true);
}

#[test]
fn an_absent_or_differently_typed_attribute_matches_no_comparison() {
    check(r#"{ .missing = "x" }"#, false);
    check(r#"{ .missing != "x" }"#, false);
    check(r#"{ .http.status_code != "x" }"#, false);
    check(r#"{ !(.missing = "x") }"#, true);
    check(r#"{ .missing !~ "x" }"#, false);
    check("{ .missing = nil && .http.method != nil && nil = .missing }", true);
    check("{ .http.method = nil }", false);
}

#[test]
fn regular_expressions_are_anchored() {
    check(r#"{ name =~ "POST .*" }"#, true);
    check(r#"{ name =~ "POST" }"#, false);
    check(r#"{ name =~ "GET|POST .*" }"#, true);
    check(r#"{ name !~ "checkout" }"#, true);
    check("{ name =~ `POST /\\w+` }", true);
    check(r#"{ name =~ "POST /\w+" }"#, true);
}

#[test]
fn of_a_list_any_element_is_equal_and_none_is_different() {
    check(r#"{ .tags = "red" && "blue" = .tags }"#, true);
    check(r#"{ .tags != "red" }"#, false);
    check(r#"{ .tags != "green" }"#, true);
    check(r#"{ .tags =~ "b.*" }"#, true);
    check(r#"{ .tags !~ "b.*" }"#, false);
}

#[test]
fn and_binds_closer_than_or_and_not_closer_than_both() {
    check("{ true || false && false }", true);
    check("{ (true || false) && false }", false);
    check("{ !false && .retry }", true);
    check("{ !.retry }", false);
}

#[test]
fn what_depends_on_the_trace_is_unknown_without_it() {
    let facts = TraceFacts {
        duration_ns: 2_000_000_000,
        root_name: Some("GET /".to_owned()),
        root_service: None,
        ..TraceFacts::default()
    };
    let test = |query: &str, trace| Query::parse(query).expect("parses").test(&span(), trace);
    assert_eq!(test("{ traceDuration > 1s }", None), None);
    assert_eq!(test("{ traceDuration > 1s && kind = client }", None), Some(false));
    assert_eq!(test("{ traceDuration > 1s || kind = server }", None), Some(true));
    assert_eq!(
        test(
            "{ traceDuration > 1s && rootName = \"GET /\" && rootServiceName = nil }",
            Some(&facts)
        ),
        Some(true)
    );
    assert!(Query::parse("{ !(trace:rootService = \"x\") }").expect("parses").needs_trace());
}

#[test]
fn errors_name_the_place_and_what_is_expected() {
    check_error(
        "{ name = }",
        "line 1, column 10: `}` is not expected here, expected a field or a value or `(`",
    );
    check_error(
        "{ .a = 1",
        "line 1, column 9: the end of the query is not expected here, expected `}` or an operator",
    );
    check_error(
        "name = 1",
        "line 1, column 1: a query of scalars is not supported, expected `{` or `(`",
    );
    check_error(
        "{\n  foo = 1 }",
        "line 2, column 3: `foo` is unknown, expected an intrinsic or `span.` `resource.` or `.` before the name of an attribute or quotes around text",
    );
    check_error("{ .a = \"x }", "line 1, column 8: text has no end, expected a closing quote");
    check_error(
        "{ .a =~ \"(\" }",
        "line 1, column 9: regular expression \"(\" is invalid: error: unclosed group",
    );
    check_error(
        "{ duration > 5parsecs }",
        "line 1, column 15: `parsecs` is no unit of time, expected ns or us or ms or s or m or h",
    );
}

#[test]
fn what_is_not_supported_is_named() {
    check_error(
        "{} | count() + 1 > 2",
        "line 1, column 14: `+` is not expected here, expected a comparison",
    );
    check_error(
        "{} | rate()",
        "line 1, column 6: `rate` makes this a metrics query, which a search of spans does not answer, expected a range query of metrics or `count()`, `min`, `max`, `sum` or `avg`",
    );
    check_error(
        "{} | rates()",
        "line 1, column 6: `rates` is not expected here, expected `{` or `count()`, `min`, `max`, `sum` or `avg` or `by` or `select` or `coalesce()`",
    );
    check_error(
        "{} } {}",
        "line 1, column 4: `}` is not expected here, expected an operator or `|` or the end of the query",
    );
    check_error(
        "{} with(a=1)",
        "line 1, column 4: hints (`with`) is not supported, expected the end of the query",
    );
    check_error(
        "{} >> ({ name = 1 })",
        "line 1, column 15: `=` compares text with a number or duration, expected text",
    );
    check_error(
        "({} | by(.a, .b))",
        "line 1, column 17: `by` takes one field in a pipeline of spans",
    );
    check_error(
        "{} | avg(name) > 1",
        "line 1, column 10: arithmetic meets text, expected a number or duration",
    );
}

#[test]
fn events_and_links_are_lists() {
    let mut span = span();
    let event = |name: &str, at: u64, key: &str| SpanEvent {
        time: Timestamp::from_unix_nanos(at).expect("in range"),
        name: name.to_owned(),
        attributes: [(key, "v")].into_iter().collect(),
        dropped: 0,
    };
    span.events = vec![event("retry", 5_000_000, "a"), event("exception", 9_000_000, "b")];
    span.links = vec![SpanLink {
        trace_id: TraceId::from_bytes([2; 16]).expect("not zero"),
        span_id: SpanId::from_u64(9).expect("not zero"),
        trace_state: String::new(),
        attributes: [("kind", "batch")].into_iter().collect(),
        dropped: 0,
        flags: 0,
    }];
    let check = |query: &str, expected: bool| {
        let query = Query::parse(query).expect("parses");
        assert!(query.fields().events);
        assert_eq!(query.test(&span, None), Some(expected), "{}", query.text());
    };
    check(r#"{ event:name = "exception" && event.a = "v" }"#, true);
    check(r#"{ event:name = "panic" }"#, false);
    check(r#"{ event:name != "exception" }"#, false);
    check("{ event:timeSinceStart > 8ms }", true);
    check("{ event:timeSinceStart > 9ms }", false);
    check("{ event.none = nil && event.b != nil }", true);
    check(r#"{ link:spanID = "0000000000000009" && link.kind =~ "b.*" }"#, true);
    check(r#"{ link:traceID = "01010101010101010101010101010101" }"#, false);
}

/// A trace of two services:
///
/// ```text
/// 1 gateway "root" 100 ms
/// +-- 2 cart "get" 10 ms error
/// |   +-- 4 cart "sql" 5 ms
/// |   +-- 5 cart "sql" 3 ms
/// +-- 3 gateway "log" 1 ms
/// ```
/// and 6, whose parent was not received.
fn trace() -> Vec<Span> {
    let span = |id: u64, parent: u64, service: &str, name: &str, ms: u64| {
        let builder = SpanBuilder::new(1, id, service).name(name).time(id, ms * 1_000_000);
        if parent == 0 { builder } else { builder.parent(parent) }
    };
    vec![
        span(1, 0, "gateway", "root", 100).attribute("n", Value::Int(1)).build(),
        span(2, 1, "cart", "get", 10).status(StatusCode::Error).build(),
        span(3, 1, "gateway", "log", 1).build(),
        span(4, 2, "cart", "sql", 5).attribute("n", Value::Int(4)).build(),
        span(5, 2, "cart", "sql", 3).attribute("n", Value::Int(6)).build(),
        span(6, 99, "cart", "lost", 2).build(),
    ]
}

/// The numbers of the spans that a query selects of [`trace`], asked span by span as a search does.
fn check_selected(query: &str, expected: &[u64]) {
    let query = Query::parse(query).expect("parses");
    let spans = trace();
    let facts = query.with_selected(TraceFacts::default(), spans.iter());
    let selected = spans.iter().filter(|span| query.test(span, Some(&facts)) == Some(true));
    let numbers: Vec<u64> = selected.map(|span| u64::from_be_bytes(*span.span_id.as_bytes())).collect();
    assert_eq!(numbers, expected, "{}", query.text());
    for span in spans.iter().filter(|span| query.test(span, Some(&facts)) == Some(true)) {
        assert_ne!(query.test(span, None), Some(false), "{} is found at all", query.text());
    }
}

#[test]
fn relations_answer_the_right_side() {
    check_selected(r#"{ name = "root" } > {}"#, &[2, 3]);
    check_selected(r#"{ name = "root" } >> {}"#, &[2, 3, 4, 5]);
    check_selected(r#"{ name = "sql" } < {}"#, &[2]);
    check_selected(r#"{ name = "sql" } << {}"#, &[1, 2]);
    check_selected(r#"{ name = "get" } ~ {}"#, &[3]);
    check_selected(r#"{ name = "sql" } ~ { name = "sql" }"#, &[4, 5]);
    check_selected(r#"{ duration > 4ms } ~ { name = "sql" }"#, &[5]);
    check_selected(r#"{ name = "root" } !>> {}"#, &[1, 6]);
    check_selected(r#"{ name = "root" } !> { resource.service.name = "cart" }"#, &[4, 5, 6]);
    check_selected(r#"{ name = "get" } !~ {}"#, &[1, 2, 4, 5, 6]);
    check_selected(r#"{ name = "root" } &>> { name = "sql" }"#, &[1, 4, 5]);
    check_selected(r#"{ name = "sql" } &< { status = error }"#, &[2, 4, 5]);
    check_selected(r#"{ name = "get" } &~ {}"#, &[2, 3]);
    check_selected(r#"{ name = "root" } > { status = error } > { name = "sql" }"#, &[4, 5]);
    check_selected(r#"{ name = "lost" } << {}"#, &[]);
}

#[test]
fn spansets_are_joined_within_a_trace() {
    check_selected(r#"{ name = "root" } && { name = "sql" }"#, &[1, 4, 5]);
    check_selected(r#"{ name = "root" } && { name = "no" }"#, &[]);
    check_selected(r#"{ name = "root" } || { name = "no" }"#, &[1]);
    check_selected(r#"{ name = "log" } || { name = "root" } && { name = "no" }"#, &[3]);
    check_selected(r#"({ name = "log" } || { name = "root" }) && { name = "lost" }"#, &[1, 3, 6]);
}

#[test]
fn a_pipeline_keeps_sets_by_their_numbers() {
    check_selected("{} | count() > 5", &[1, 2, 3, 4, 5, 6]);
    check_selected("{} | count() > 6", &[]);
    check_selected(r#"{ resource.service.name = "cart" } | avg(duration) = 5ms"#, &[2, 4, 5, 6]);
    check_selected("{} | sum(.n) = 11 | { .n > 1 } | min(.n) >= 4", &[4, 5]);
    check_selected("{} | by(resource.service.name) | count() > 2", &[2, 4, 5, 6]);
    check_selected(
        "{} | by(resource.service.name) | max(duration) > 50ms | coalesce() | count() = 2",
        &[1, 3],
    );
    check_selected(r#"({ name = "sql" } | count() = 2) << { status = error }"#, &[2]);
    check_selected("{} | by(resource.service.name) | by(name) | count() = 2", &[4, 5]);
    check_selected("{} | by(.n) | count() = 3", &[2, 3, 6]);
    check_selected("{ .none = 1 } | max(.n) < 5", &[]);
    check_selected("{ status = error } | select(.n, name)", &[2]);
    check_selected("{} | max(duration) > avg(duration)", &[1, 2, 3, 4, 5, 6]);
}

#[test]
fn the_place_of_a_span_is_a_field() {
    check_selected("{ span:childCount = 2 }", &[1, 2]);
    check_selected(r#"{ parent.service.name = "cart" }"#, &[4, 5]);
    check_selected("{ parent.n = 1 && parent.span.n = 1 }", &[2, 3]);
    check_selected("{ parent.n = nil }", &[1, 4, 5, 6]);
    check_selected("{ nestedSetLeft = 1 && nestedSetRight = 10 }", &[1]);
    check_selected("{ nestedSetParent = 1 }", &[2, 3]);
    check_selected("{ nestedSetLeft > 2 && nestedSetRight < 7 }", &[4, 5]);
    check_selected("{ parent = nil || nestedSetParent = 0 }", &[1, 6]);
}

#[test]
fn roots_are_known_without_the_trace() {
    for (query, expected) in [("{ nestedSetParent < 0 }", true), ("{ nestedSetParent > -1 && true }", false)] {
        let query = Query::parse(query).expect("parses");
        assert!(!query.needs_trace());
        let tested: Vec<_> = trace().iter().map(|span| query.test(span, None)).collect();
        assert_eq!(tested[0], Some(expected));
        assert!(tested[1..].iter().all(|test| *test == Some(!expected)));
    }
}

#[test]
fn spans_in_a_circle_and_deep_chains_end() {
    let mut spans: Vec<Span> = (1..20_000).map(|id| SpanBuilder::new(1, id + 1, "s").parent(id).build()).collect();
    spans.push(SpanBuilder::new(1, 1, "s").parent(20_000).build());
    spans.push(SpanBuilder::new(1, 50_000, "s").parent(50_000).build());
    for query in ["{} >> {}", "{} << {}", "{ nestedSetLeft > 0 } ~ {}"] {
        let query = Query::parse(query).expect("parses");
        let facts = query.with_selected(TraceFacts::default(), spans.iter());
        let selected = spans.iter().filter(|span| query.test(span, Some(&facts)) == Some(true));
        assert_eq!(
            selected.count(),
            if query.text().contains('~') { 0 } else { 20_000 },
            "{}",
            query.text()
        );
    }
}

#[test]
fn of_a_relation_only_the_right_side_prunes() {
    let conditions = |query: &str| Query::parse(query).expect("parses").conditions();
    let name = [SpanCondition::Name("b".to_owned())];
    assert_eq!(conditions(r#"{ name = "a" } >> { name = "b" }"#), name);
    assert_eq!(conditions(r#"{ name = "b" } | count() > 1"#), name);
    assert_eq!(conditions(r#"{ name = "a" } &>> { name = "b" }"#), []);
    assert_eq!(conditions(r#"{ name = "a" } && { name = "b" }"#), []);
}

#[test]
fn types_are_checked_before_any_span_is_read() {
    check_error(
        "{ status = 5 }",
        "line 1, column 10: `=` compares a status with a number or duration, expected a status",
    );
    check_error(
        "{ status > ok }",
        "line 1, column 10: `>` has no meaning for a status, expected `=` or `!=`",
    );
    check_error(
        "{ duration }",
        "line 1, column 1: a number or duration is no condition, expected a comparison",
    );
    check_error(
        "{ name + 1 = 2 }",
        "line 1, column 8: arithmetic meets text, expected a number or duration",
    );
    check_error(
        "{ duration =~ \"1\" }",
        "line 1, column 12: a regular expression meets a number or duration, expected text",
    );
}

#[test]
fn depth_and_length_are_limited() {
    check_error(
        &format!("{{ {}true{} }}", "(".repeat(101), ")".repeat(101)),
        "line 1, column 104: nested more than 100 deep",
    );
    check_error(
        &format!("{{ {}1 = 1 }}", "1 + ".repeat(200)),
        "line 1, column 405: more than 100 operators in a row",
    );
    let long = format!("{{ {}true }}", "true || ".repeat(10_000));
    check(&long, true);
    assert!(Query::parse(&" ".repeat(Query::BYTES_MAX + 1)).is_err());
}

#[test]
fn conditions_are_what_every_match_meets() {
    let query = r#"{ resource.service.name = "cart" && 100ms < duration && status = error && .http.status_code = 5
              && (name = "a" || name = "b") && span.x = "y" && duration < 1.5 && kind != server }"#;
    let conditions = Query::parse(query).expect("parses").conditions();
    let expected = [
        SpanCondition::Service("cart".to_owned()),
        SpanCondition::DurationMin(100_000_000),
        SpanCondition::Status(StatusCode::Error),
        SpanCondition::AnyAttribute("http.status_code".to_owned(), Value::Int(5)),
        SpanCondition::SpanAttribute("x".to_owned(), Value::from("y")),
        SpanCondition::DurationMax(2),
    ];
    assert_eq!(conditions, expected);
    for query in [
        r#"{ .service.name = "a" }"#,
        "{ span.x = nil }",
        r#"{ span.x != "y" }"#,
        "{ !(span.x = 1) }",
    ] {
        assert_eq!(Query::parse(query).expect("parses").conditions(), [], "{query}");
    }
}

#[test]
fn only_what_is_read_is_fetched() {
    let fields = |query: &str| Query::parse(query).expect("parses").fields();
    assert_eq!(fields(r#"{ name = "a" && resource.service.name = "b" }"#), SpanFields::default());
    assert!(fields("{ span.a = 1 }").attributes);
    assert!(fields("{ !(1 = resource.a) }").resource);
}

/// Text around valid queries: pieces are left out, doubled and exchanged.
#[test]
fn no_text_breaks_the_parser_and_every_error_has_a_place() {
    const PIECES: [&str; 29] = [
        "| count() > 1",
        "|",
        "} >> {",
        "by(name)",
        "event:name",
        "{",
        "}",
        "(",
        ")",
        " ",
        "span.",
        ".a",
        "\"",
        "`",
        "=~",
        "!~",
        "\\",
        "&&",
        "||",
        "-",
        "!",
        "9e",
        "1h",
        "\u{b5}s",
        "\n",
        "name",
        "\u{1f525}",
        "resource.\"",
        "99999999999999999999",
    ];
    let mut random = spanflame_testkit::Random::new(42);
    let mut parsed = 0;
    for _ in 0..20_000 {
        let mut text = "{ ".to_owned();
        (0..random.below(8)).for_each(|_| text.push_str(PIECES[random.below(PIECES.len() as u64) as usize]));
        text.push_str(" }");
        match Query::parse(&text) {
            Ok(query) => {
                query.test(&span(), None);
                query.with_selected(TraceFacts::default(), trace().iter());
                parsed += 1;
            }
            Err(error) => {
                let line = text.split('\n').nth(error.at.line as usize - 1).expect("the line exists");
                assert!(
                    (1..=line.chars().count() + 1).contains(&(error.at.column as usize)),
                    "{text:?}: {error}"
                );
            }
        }
    }
    assert!(parsed > 500, "only {parsed} texts were queries");
}

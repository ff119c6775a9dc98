#![no_main]

use spanflame_query::traceql::Query;

libfuzzer_sys::fuzz_target!(|text: &str| {
    // What is read says the same when it is read again.
    if let Ok(query) = Query::parse(text) {
        Query::parse(query.text()).expect("the text of a query is a query");
    }
});

//! The page comes out of the binary, with the headers that keep it safe and fresh.

use tempfile::TempDir;

use crate::harness::{TestServer, config};

#[tokio::test(flavor = "multi_thread")]
async fn every_address_of_a_screen_is_the_page_and_nothing_else_is() {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    let client = reqwest::Client::new();
    let get = async |path: &str| {
        client
            .get(format!("http://{}{path}", server.http()))
            .send()
            .await
            .expect("an answer")
    };
    for path in [
        "/",
        "/spans?q={}",
        "/trace/5732450b54c5f9e85941cd3567d0ee56?span=1",
        "/compare",
        "/profiles",
        "/view",
    ] {
        let page = get(path).await;
        assert_eq!(page.status(), 200, "{path}");
        let header = |name: &str| page.headers()[name].to_str().expect("text").to_owned();
        assert_eq!(header("content-type"), "text/html; charset=utf-8");
        assert_eq!(header("cache-control"), "no-cache");
        assert_eq!(header("x-content-type-options"), "nosniff");
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(page.text().await.expect("text").contains("<title>Spanflame</title>"));
    }
    let missing = get("/no/such/screen").await;
    assert_eq!(missing.status(), 404);
    assert!(missing.text().await.expect("text").contains("\"not_found\""));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_the_browser_has_is_not_sent_again() {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    let client = reqwest::Client::new();
    let address = format!("http://{}/", server.http());
    let packed = client
        .get(&address)
        .header("accept-encoding", "gzip")
        .send()
        .await
        .expect("an answer");
    assert_eq!(packed.headers()["content-encoding"], "gzip");
    let tag = packed.headers()["etag"].clone();
    let again = client.get(&address).header("if-none-match", tag).send().await.expect("an answer");
    assert_eq!(again.status(), 304);
    server.stop().await;
}

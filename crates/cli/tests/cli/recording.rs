//! The recording that the tests send: a Go service with slow and fast requests (testdata/cli/go-rootspan).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use crate::program::Server;

/// A slow request: its samples name its root only.
pub(crate) const SLOW_TRACE: &str = "9e7c7c70dcd8a306f5c0e99137daa7a6";
/// The root of [`SLOW_TRACE`].
pub(crate) const SLOW_ROOT: &str = "cddf05d66cd0fd6e";
/// The child of [`SLOW_ROOT`] in the same process.
pub(crate) const SLOW_CHILD: &str = "aa034367f3713990";
/// A fast request.
pub(crate) const FAST_TRACE: &str = "5732450b54c5f9e85941cd3567d0ee56";
/// When it was recorded, widely.
pub(crate) const RECORDED: [&str; 4] = ["--start", "2026-11-30T22:00:00Z", "--end", "2026-11-30T23:00:00Z"];

/// A file of the recording.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/cli/go-rootspan")
        .join(name)
}

/// Sends the traces as their SDK did, and the profile by `spanflame upload`.
pub(crate) fn send(server: &Server) {
    let traces = std::fs::read(file("traces-1.body")).expect("the recording is there");
    let status = post(
        server,
        "/v1/traces",
        "Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n",
        &traces,
    );
    assert_eq!(status, 200);
    upload(server).expect(0);
}

/// Uploads the profile.
pub(crate) fn upload(server: &Server) -> crate::program::Ran {
    let profile = file("cpu-1.pb.gz").display().to_string();
    server.ask(&[
        "upload",
        &profile,
        "--service",
        "zoo-go",
        "--time",
        "1796076315462194529",
        "--label",
        "region=eu-1",
    ])
}

/// One POST as an exporter makes it; answers the status.
fn post(server: &Server, path: &str, headers: &str, body: &[u8]) -> u16 {
    let address = server.http.strip_prefix("http://").expect("an address");
    let mut stream = TcpStream::connect(address).expect("the server listens");
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("the server reads");
    stream.write_all(body).expect("the server reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the server answers");
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("no HTTP: {answer}"))
}

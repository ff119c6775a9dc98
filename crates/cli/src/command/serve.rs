//! `spanflame serve`

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use clap::Args;
use spanflame_server::{Addresses, Config};

use super::settings::Settings;
use crate::client::SERVER_DEFAULT;
use crate::error::Error;
use crate::session::{Outcome, Session};

/// Serve: take in traces and profiles, answer questions
///
/// Without flags: data in ./spanflame-data, everything over HTTP on 127.0.0.1:4040, OTLP on 127.0.0.1:4317 (gRPC)
/// and 127.0.0.1:4318 (HTTP). Flags win over SPANFLAME_* variables, those over the file. Ctrl-C or SIGTERM ends
/// it after what is in flight; nothing acknowledged is lost, not even by kill -9.
#[derive(Args)]
#[command(after_help = "\
Examples:
  spanflame serve
  spanflame serve --data /var/lib/spanflame --http 127.0.0.1:0 --ready-file /run/spanflame.json
  spanflame serve --config spanflame.toml --retention-raw 7d
  spanflame serve --data s3://bucket/path --wal /var/lib/spanflame/wal")]
pub(crate) struct Serve {
    #[command(flatten)]
    settings: Settings,
}

impl Serve {
    pub(crate) fn run(self, session: &mut Session) -> Result<Outcome, Error> {
        let config = self.settings.load()?;
        log(&config)?;
        let data = config.data.clone();
        let ready = |addresses: &Addresses| greet(addresses, &data);
        session.wait(spanflame_server::run(config, ready, stop_signal()))?;
        Ok(Outcome::Found)
    }
}

/// Standard output says where to go; the log goes to standard error.
fn greet(addresses: &Addresses, data: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    // Whoever closed our output does not want to read it; the server serves on.
    let _ = out.write_all(greeting(addresses, data).as_bytes()).and_then(|()| out.flush());
}

fn greeting(addresses: &Addresses, data: &str) -> String {
    let [http, otlp_grpc, otlp_http] = [addresses.http, addresses.otlp_grpc, addresses.otlp_http].map(reachable);
    format!(
        "\
spanflame serves
  API, OTLP/HTTP     http://{http}
  OTLP over gRPC     http://{otlp_grpc}
  OTLP over HTTP     http://{otlp_http}
{further}  data               {data}

Send the first data:
  traces    export OTEL_EXPORTER_OTLP_ENDPOINT=http://{otlp_http} OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
            and start any program that uses an OpenTelemetry SDK
  profiles  spanflame upload cpu.pprof --service NAME --time now{server}
Then ask:
  spanflame spans{server}
  spanflame why TRACE{server}
",
        further = further(addresses),
        server = server_flag(http),
    )
}

/// A line for each address that is off by default.
fn further(addresses: &Addresses) -> String {
    let named = addresses.named().into_iter().filter_map(|(key, address)| {
        let (title, scheme) = match key {
            "tempo_http" => ("Tempo", "http"),
            "jaeger_http" => ("Jaeger", "http"),
            "zipkin_http" => ("Zipkin collector", "http"),
            "jaeger_grpc" => ("Jaeger over gRPC", "http"),
            "jaeger_thrift_http" => ("Jaeger Thrift", "http"),
            "jaeger_thrift_udp" => ("Jaeger over UDP", "udp"),
            _ => return None,
        };
        Some(format!("  {title:<18} {scheme}://{}\n", reachable(address)))
    });
    named.collect()
}

/// An address that this machine can send to: nobody can send to 0.0.0.0 everywhere.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::from((Ipv6Addr::LOCALHOST, address.port())),
        _ => address,
    }
}

/// How to tell a command where this server is; nothing where commands ask by themselves.
fn server_flag(http: SocketAddr) -> String {
    let url = format!("http://{http}");
    if url == SERVER_DEFAULT {
        String::new()
    } else {
        format!(" --server {url}")
    }
}

/// Resolves when the process is asked to end.
async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let wait = async |kind| match signal(kind) {
        Ok(mut signal) => {
            signal.recv().await;
        }
        Err(error) => {
            tracing::warn!(%error, "cannot wait for a signal");
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = wait(SignalKind::interrupt()) => {}
        () = wait(SignalKind::terminate()) => {}
    }
    tracing::info!("asked to stop");
}

fn log(config: &Config) -> Result<(), Error> {
    use spanflame_server::config::LogFormat;
    use tracing_subscriber::EnvFilter;
    // A bare level is about us: at info the libraries below tell every step of every commit.
    let directives = match config.log_level.parse::<tracing::Level>() {
        Ok(level) => format!("warn,spanflame={level}"),
        Err(_) => config.log_level.clone(),
    };
    let filter = EnvFilter::try_new(directives).map_err(|_| {
        Error::Usage(format!(
            "log_level is {:?}, expected a level such as info, or a filter such as warn,spanflame=debug",
            config.log_level
        ))
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match config.log_format {
        LogFormat::Text => builder.with_target(false).init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_names_what_was_really_bound() {
        let address = |port: u16| std::net::SocketAddr::from(([127, 0, 0, 1], port));
        let addresses = Addresses {
            http: address(1),
            otlp_grpc: address(2),
            otlp_http: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 3)),
            tempo_http: Some(address(4)),
            jaeger_http: None,
            zipkin_http: None,
            jaeger_grpc: None,
            jaeger_thrift_http: None,
            jaeger_thrift_udp: Some(address(5)),
        };
        let text = greeting(&addresses, "d");
        for expected in [
            "http://127.0.0.1:1\n",
            "http://127.0.0.1:2\n",
            "ENDPOINT=http://127.0.0.1:3 ",
            "Tempo              http://127.0.0.1:4\n",
            "Jaeger over UDP    udp://127.0.0.1:5\n",
            "data               d\n",
            "spans --server http://127.0.0.1:1\n",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let default = Addresses {
            http: address(4040),
            ..addresses
        };
        assert!(greeting(&default, "d").contains("spanflame spans\n"));
    }
}

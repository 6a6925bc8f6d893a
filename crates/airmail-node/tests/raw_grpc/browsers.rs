//! Requests that a browser sends for somebody else's page, with its headers: the port for HTTP refuses
//! it, and the port for gRPC does not understand it.

use crate::node::Node;
use airmail_node::config::Config;
use airmail_testkit::waiting::waiting;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Headers that browsers send beside those that a test is about: Chrome, Firefox and Safari.
const BROWSERS: [&str; 3] = [
    "Connection: keep-alive\r\nsec-ch-ua: \"Chromium\";v=\"142\", \"Not_A Brand\";v=\"99\"\r\n\
     sec-ch-ua-mobile: ?0\r\nsec-ch-ua-platform: \"Linux\"\r\n\
     User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
     Chrome/142.0.0.0 Safari/537.36\r\nAccept: */*\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n\
     Accept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: en-US,en;q=0.9\r\n",
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0\r\nAccept: */*\r\n\
     Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n\
     Sec-Fetch-Dest: empty\r\nSec-Fetch-Mode: cors\r\nPriority: u=4\r\n",
    "Accept: */*\r\nAccept-Language: en-GB,en;q=0.9\r\nConnection: keep-alive\r\n\
     Accept-Encoding: gzip, deflate\r\nUser-Agent: Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) \
     AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Safari/605.1.15\r\n",
];

/// A node with its settings, and where it answers HTTP, as `HOST:PORT`.
async fn node(settings: &[(&str, &str)]) -> (Node, String) {
    let mut config = Config {
        log_url: "memory:".into(),
        ..Config::default()
    };
    for (name, value) in settings {
        config.set(name, value).unwrap();
    }
    let node = Node::with(config).await;
    let http = node.running.http_address.unwrap().to_string();
    (node, http)
}

/// The answer of an address to these bytes, until it closes the connection.
async fn say(address: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // Closed by the node, whether in order or by a reset.
    let _ = stream.read_to_end(&mut answer).await;
    answer
}

/// The answer to a request with these headers, which is the connection's last.
async fn ask(address: &str, line: &str, headers: &str) -> String {
    let request = format!("{line} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
    String::from_utf8(say(address, request.as_bytes()).await).unwrap()
}

#[track_caller]
fn assert_refused(answer: &str, header: &str) {
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(
        answer.contains("x-content-type-options: nosniff"),
        "{answer}"
    );
    assert!(answer.contains("PERMISSION_DENIED"), "{answer}");
    assert!(answer.contains(&format!("({header}: ")), "{answer}");
    assert!(!answer.contains("airmail_"), "{answer}");
}

#[tokio::test]
async fn a_page_of_another_origin_is_refused() {
    let (node, http) = node(&[]).await;
    for browser in BROWSERS {
        let headers = |origin: &str| {
            format!(
                "Host: {http}\r\n{browser}Origin: {origin}\r\nReferer: http://evil.example/\r\n\
                 Sec-Fetch-Site: cross-site\r\n"
            )
        };
        for origin in [
            "http://evil.example",
            "https://evil.example",
            "null",
            "http://localhost:3000",
        ] {
            assert_refused(
                &ask(&http, "GET /metrics", &headers(origin)).await,
                "origin",
            );
        }
        // A form, which asks nobody before it is sent; and the question that comes before other requests.
        let form = "Content-Type: text/plain;charset=UTF-8\r\nContent-Length: 0\r\n";
        let form = headers("http://evil.example") + form;
        assert_refused(&ask(&http, "POST /metrics", &form).await, "origin");
        let before = "Access-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: x\r\n";
        let before = headers("http://evil.example") + before;
        assert_refused(&ask(&http, "OPTIONS /metrics", &before).await, "origin");
    }
    let told = ask(&http, "GET /metrics", &format!("Host: {http}\r\n")).await;
    let counted = "airmail_http_refused_total{header=\"origin\"} 18";
    assert!(told.contains(counted), "{told}");
    node.stop().await;
}

#[tokio::test]
async fn a_page_whose_own_name_leads_to_this_machine_is_refused() {
    let (node, http) = node(&[]).await;
    let port = node.running.http_address.unwrap().port();
    for browser in BROWSERS {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
        ] {
            let same = format!("Host: {host}:{port}\r\n{browser}Sec-Fetch-Site: same-origin\r\n");
            assert_refused(&ask(&http, "GET /metrics", &same).await, "host");
            let named = format!("{same}Origin: http://{host}:{port}\r\n");
            assert_refused(&ask(&http, "GET /metrics", &named).await, "host");
            assert_refused(&ask(&http, "GET /nowhere", &same).await, "host");
        }
    }
    let own = format!("Host: {http}\r\n");
    let two = format!("{own}Host: evil.example\r\n");
    assert_refused(&ask(&http, "GET /metrics", &two).await, "host");
    let absolute = "GET http://evil.example/metrics";
    assert_refused(&ask(&http, absolute, &own).await, "host");
    node.stop().await;
}

/// The beginning of every connection of HTTP/2, a frame of settings without any, and a request for the
/// metrics of a host.
fn http_2(authority: &str) -> Vec<u8> {
    // GET and http, from HPACK's own table; path and authority as they are.
    let mut head = vec![0x82, 0x86];
    for (name, value) in [(0x04, "/metrics"), (0x01, authority)] {
        head.push(name);
        head.push(u8::try_from(value.len()).unwrap());
        head.extend_from_slice(value.as_bytes());
    }
    let length = u32::try_from(head.len()).unwrap().to_be_bytes();
    let begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    // HEADERS, with all of them and the end of the request, of stream 1.
    let frame = [&length[1..], &[1, 5, 0, 0, 0, 1], &head].concat();
    [&begin[..], &frame].concat()
}

/// Reads an answer up to these words, which it must have.
async fn read_up_to(stream: &mut TcpStream, words: &str) {
    let mut answer = Vec::new();
    loop {
        let read = stream.read_buf(&mut answer).await.unwrap();
        let text = String::from_utf8_lossy(&answer);
        if text.contains(words) {
            return;
        }
        assert!(read > 0, "no {words}: {text}");
    }
}

#[tokio::test]
async fn over_http_2_the_authority_is_the_host() {
    let (node, http) = node(&[]).await;
    for (authority, words) in [
        ("evil.example", "PERMISSION_DENIED"),
        ("localhost", "# TYPE airmail_"),
    ] {
        let mut stream = TcpStream::connect(&http).await.unwrap();
        stream.write_all(&http_2(authority)).await.unwrap();
        let _waiting = waiting(format!("{words} for {authority}"));
        read_up_to(&mut stream, words).await;
    }
    node.stop().await;
}

#[tokio::test]
async fn who_types_the_address_or_sends_no_browsers_headers_is_answered() {
    let (node, http) = node(&[("http.hosts", "node.example.org")]).await;
    let port = node.running.http_address.unwrap().port();
    for browser in BROWSERS {
        for host in [
            "127.0.0.1",
            "localhost",
            "[::1]",
            "LOCALHOST.",
            "node.example.org",
        ] {
            let typed = format!("Host: {host}:{port}\r\n{browser}Sec-Fetch-Site: none\r\n");
            let answer = ask(&http, "GET /metrics", &typed).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{host}: {answer}");
        }
        for host in ["127.0.0.1", "localhost", "node.example.org"] {
            let own = format!("Host: {host}:{port}\r\n{browser}Origin: http://{host}:{port}\r\n");
            let answer = ask(&http, "GET /metrics", &own).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{host}: {answer}");
        }
    }
    let old = say(&http, b"GET /metrics HTTP/1.0\r\n\r\n").await;
    let old = String::from_utf8(old).unwrap();
    assert!(
        old.starts_with("HTTP/1.0 200") && old.contains("airmail_ready"),
        "{old}"
    );
    node.stop().await;
}

#[tokio::test]
async fn probes_are_answered_whatever_they_name() {
    let (node, http) = node(&[]).await;
    for path in ["/healthz", "/readyz"] {
        for headers in [
            "Host: 10-1-2-3.pods.cluster.example\r\nUser-Agent: kube-probe/1.34\r\n",
            "Host: evil.example\r\nOrigin: http://evil.example\r\n",
            "",
        ] {
            let answer = ask(&http, &format!("GET {path}"), headers).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        }
        let old = say(&http, format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await;
        assert!(old.starts_with(b"HTTP/1.0 200"), "{path}");
    }
    node.stop().await;
}

/// Browsers speak HTTP/2 over TLS alone, and the port for gRPC speaks nothing else: what a form or a script
/// sends there begins with a line of HTTP/1, whatever comes after it.
#[tokio::test]
async fn what_a_browser_sends_to_the_port_for_grpc_does_nothing() {
    let (node, http) = node(&[]).await;
    let grpc = node.address.to_string();
    // A PublishOne of a message on topic "t": `message { topic: "t" }`, in gRPC's frame.
    let message = b"\0\0\0\0\x05\x12\x03\x0a\x01t";
    let call = [b"\0\0\x0a\0\x01\0\0\0\x01", &message[..]].concat();
    let smuggled = [&http_2("localhost")[..], &call].concat();
    for kind in [
        "text/plain",
        "application/grpc",
        "application/x-www-form-urlencoded",
    ] {
        for body in [&message[..], &smuggled] {
            let head = format!(
                "POST /airmail.v1.Airmail/PublishOne HTTP/1.1\r\nHost: {grpc}\r\n{}\
                 Origin: http://evil.example\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
                BROWSERS[0],
                body.len()
            );
            let answer = say(&grpc, &[head.as_bytes(), body].concat()).await;
            assert!(!answer.starts_with(b"HTTP/1.1 2"), "{kind}");
        }
    }
    let upgrade = format!(
        "GET / HTTP/1.1\r\nHost: {grpc}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
         HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
    );
    let answer = say(&grpc, upgrade.as_bytes()).await;
    assert!(!answer.starts_with(b"HTTP/1.1 101"));
    let metrics = ask(&http, "GET /metrics", &format!("Host: {http}\r\n")).await;
    assert!(
        metrics.contains("airmail_published_messages_total 0"),
        "{metrics}"
    );
    assert!(
        metrics.contains("airmail_connections_failed_total 7"),
        "{metrics}"
    );
    node.publish_one("t", "x").await.unwrap();
    assert_eq!(node.history("t").await, ["x"]);
    node.stop().await;
}

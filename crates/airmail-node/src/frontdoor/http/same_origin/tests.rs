use super::*;
use axum::http::Version;

const V4: &str = "127.0.0.1:7401";
const V6: &str = "[::1]:7401";
/// One that other machines reach.
const WIDE: &str = "0.0.0.0:7401";

/// Asks the listener at `listener`, by a connection to `reached`.
fn ask_at(
    listener: &str,
    reached: &str,
    uri: &str,
    headers: &[(&str, &str)],
) -> Result<(), &'static str> {
    let hosts = "node.example.org, 10.0.0.7".parse().unwrap();
    let own = SameOrigin::new(listener.parse().unwrap(), hosts);
    let mut request = Request::builder().uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(()).unwrap();
    let checked = own.check(reached.parse().unwrap(), &request);
    checked.map_err(|foreign| foreign.header)
}

/// Asks the listener at 127.0.0.1 for its metrics.
fn ask(headers: &[(&str, &str)]) -> Result<(), &'static str> {
    ask_at(V4, "127.0.0.1", "/metrics", headers)
}

#[test]
fn a_host_of_loopback_or_of_the_settings_is_answered_by_any_port() {
    for host in [
        "127.0.0.1:7401",
        "localhost:7401",
        "LOCALHOST.",
        // Forwarded, as by ssh -L 9000:localhost:7401.
        "localhost:9000",
        "127.8.9.1",
        "[::1]:7401",
        "[::ffff:127.0.0.1]:7401",
        "Node.Example.Org:7401",
        "10.0.0.7",
    ] {
        assert_eq!(ask(&[("host", host)]), Ok(()), "{host}");
        assert_eq!(ask_at(V6, "::1", "/metrics", &[("host", host)]), Ok(()));
    }
}

#[test]
fn a_host_of_somebody_else_is_refused_on_loopback_alone() {
    for host in [
        "evil.example:7401",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:7401",
        "example.org",
        "10.0.0.8",
        "[fe80::1]:7401",
        "0.0.0.0:7401",
        "localhost@evil.example",
        "evil.example#localhost",
        "localhost, evil.example",
        "",
    ] {
        let headers = [("host", host)];
        assert_eq!(ask(&headers), Err("host"), "{host:?}");
        for mapped in ["[::ffff:127.0.0.1]:7401", V6] {
            let asked = ask_at(mapped, "::1", "/metrics", &headers);
            assert_eq!(asked, Err("host"), "{mapped}, {host:?}");
        }
        assert_eq!(ask_at(WIDE, "127.0.0.1", "/metrics", &headers), Ok(()));
    }
}

#[test]
fn each_host_that_a_request_names_has_to_be_its_own() {
    let (own, other) = (("host", "localhost:7401"), ("host", "evil.example"));
    assert_eq!(ask(&[own, own]), Ok(()));
    assert_eq!(ask(&[own, other]), Err("host"));
    assert_eq!(ask(&[other, own]), Err("host"));
    let absolute = |host: &str, headers: &[(&str, &str)]| {
        ask_at(V4, "127.0.0.1", &format!("http://{host}/metrics"), headers)
    };
    assert_eq!(absolute("localhost:7401", &[]), Ok(()));
    assert_eq!(absolute("localhost:7401", &[own]), Ok(()));
    assert_eq!(absolute("evil.example", &[own]), Err("host"));
    assert_eq!(absolute("localhost@evil.example", &[own]), Err("host"));
    assert_eq!(absolute("localhost:7401", &[other]), Err("host"));
}

#[test]
fn http_2_names_its_host_by_its_authority() {
    let own = SameOrigin::new(V4.parse().unwrap(), Hosts::default());
    for (uri, answered) in [
        ("http://localhost:7401/metrics", true),
        ("http://evil.example:7401/metrics", false),
    ] {
        let request = Request::get(uri).version(Version::HTTP_2).body(()).unwrap();
        let checked = own.check("127.0.0.1".parse().unwrap(), &request);
        assert_eq!(checked.is_ok(), answered, "{uri}");
    }
}

#[test]
fn who_names_no_host_is_no_browser_and_is_answered() {
    assert_eq!(ask(&[]), Ok(()));
    assert_eq!(ask_at(WIDE, "10.0.0.7", "/metrics", &[]), Ok(()));
}

#[test]
fn an_origin_is_own_by_scheme_host_and_port() {
    let origin = |listener: &str, reached: &str, origin: &str| {
        let headers = [("host", "localhost"), ("origin", origin)];
        ask_at(listener, reached, "/metrics", &headers).is_ok()
    };
    for own in [
        "http://127.0.0.1:7401",
        "http://localhost:7401",
        "HTTP://LocalHost.:7401",
        "http://node.example.org:7401",
        "http://10.0.0.7:7401",
    ] {
        assert!(origin(V4, "127.0.0.1", own), "{own}");
    }
    for foreign in [
        "null",
        "",
        "https://127.0.0.1:7401",
        "http://127.0.0.1:7400",
        "http://127.0.0.1",
        "http://localhost:7401/",
        "http://localhost:7401@evil.example",
        "http://evil.example",
        "http://evil.example:7401",
        "http://[::1]:7401",
        // Another process may listen there.
        "http://127.0.0.2:7401",
        "http://localhost:7401 http://evil.example",
        "chrome-extension://abcdefgh",
        "file://",
        "localhost:7401",
    ] {
        assert!(!origin(V4, "127.0.0.1", foreign), "{foreign}");
        assert!(!origin(WIDE, "127.0.0.1", foreign), "{foreign}");
    }
    assert!(origin(V6, "::1", "http://[::1]:7401"));
    assert!(origin(V6, "::1", "http://[0:0::1]:7401"));
    assert!(origin(V6, "::1", "http://localhost:7401"));
    assert!(!origin(V6, "::1", "http://127.0.0.1:7401"));
    // One that listens everywhere is what a connection has reached.
    assert!(origin(WIDE, "192.168.3.4", "http://192.168.3.4:7401"));
    assert!(origin(
        "[::]:7401",
        "::ffff:192.168.3.4",
        "http://192.168.3.4:7401"
    ));
    assert!(!origin(WIDE, "192.168.3.4", "http://192.168.3.5:7401"));
    assert!(!origin(WIDE, "192.168.3.4", "http://localhost:7401"));
    assert!(origin("127.0.0.1:80", "127.0.0.1", "http://127.0.0.1"));
}

#[test]
fn each_of_several_origins_has_to_be_own() {
    let (own, other) = (
        ("origin", "http://localhost:7401"),
        ("origin", "http://evil.example"),
    );
    assert_eq!(ask(&[own, own]), Ok(()));
    assert_eq!(ask(&[own, other]), Err("origin"));
    assert_eq!(ask(&[other, own]), Err("origin"));
}

#[test]
fn probes_are_answered_whatever_they_name_and_nothing_that_only_looks_like_them() {
    let headers = [("host", "evil.example"), ("origin", "null")];
    for path in [
        "/healthz",
        "/readyz",
        "/readyz?verbose",
        "http://evil.example/healthz",
    ] {
        assert_eq!(ask_at(V4, "127.0.0.1", path, &headers), Ok(()), "{path}");
    }
    for path in [
        "/",
        "/metrics",
        "/healthz/",
        "/healthz/../metrics",
        "/nowhere",
    ] {
        let asked = ask_at(V4, "127.0.0.1", path, &headers);
        assert_eq!(asked, Err("host"), "{path}");
    }
}

#[test]
fn bytes_that_are_no_text_are_foreign() {
    let own = SameOrigin::new(V4.parse().unwrap(), Hosts::default());
    for (name, header) in [(HOST, "host"), (ORIGIN, "origin")] {
        let value = HeaderValue::from_bytes(b"http://localhost:7401\xff").unwrap();
        let request = Request::get("/metrics")
            .header(name, value)
            .body(())
            .unwrap();
        let foreign = own.check("127.0.0.1".parse().unwrap(), &request);
        assert_eq!(foreign.unwrap_err().header, header);
    }
}

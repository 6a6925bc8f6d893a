//! Names as users write them: of topics, of namespaces, of nodes.

#![no_main]

use airmail_client::parse_url;
use airmail_fuzz::fuzz_target;
use airmail_model::{Limits, Namespace, TopicName};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(topic) = TopicName::new(text, &Limits::DEFAULT) {
        assert_eq!(topic.as_str(), text);
        assert!(!text.is_empty() && !text.chars().any(char::is_control));
    }
    if Namespace::check_name(text).is_ok() {
        let letter = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        assert!(text.chars().all(letter) && !text.starts_with('_'));
    }
    for url in [text.to_owned(), format!("airmail://{text}")] {
        let Ok(nodes) = parse_url(&url) else { continue };
        let written: Vec<String> = nodes.iter().map(ToString::to_string).collect();
        let again = parse_url(&format!("airmail://{}", written.join(",")));
        assert_eq!(again.as_ref(), Ok(&nodes));
    }
});

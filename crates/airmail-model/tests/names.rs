//! Valid names, and the facts that the errors for others carry.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use airmail_model::{Error, ErrorCode, Limits, Namespace, NamespaceId, TopicName};
use std::time::Duration;

#[test]
fn a_topic_is_text_of_one_byte_to_the_limit_without_control_characters() {
    let check = |name: &str| TopicName::check(name, &Limits::DEFAULT);
    assert!(check("a").is_ok());
    assert!(check("straße/第一 ✉").is_ok());
    assert!(check(&"x".repeat(1024)).is_ok());
    for bad in ["", "a\nb", "a\u{7f}", "\u{85}", &"x".repeat(1025)] {
        let error = check(bad).unwrap_err();
        assert_eq!(
            (error.code(), error.field_name()),
            (ErrorCode::TopicInvalid, "topic")
        );
        assert!(!error.found().is_empty() && !error.expected().is_empty());
    }
}

#[test]
fn one_name_has_different_hashes_in_different_namespaces() {
    let hash = |namespace| TopicName::hash_of(NamespaceId(namespace), "orders");
    assert_ne!(hash(1), hash(2));
    let name = TopicName::new("orders", &Limits::DEFAULT).unwrap();
    assert_eq!(name.hash(NamespaceId(1)), hash(1));
}

#[test]
fn a_namespace_is_letters_digits_and_three_signs() {
    assert!(Namespace::check_name("Orders-2.eu_west").is_ok());
    for bad in ["", "_system", "a b", "ä", &"x".repeat(256)] {
        let error = Namespace::check_name(bad).unwrap_err();
        assert_eq!(
            (error.code(), error.field_name()),
            (ErrorCode::NamespaceInvalid, "namespace")
        );
    }
}

#[test]
fn an_error_says_field_value_limit_and_when_to_try_again() {
    let bare = Error::new(ErrorCode::Internal).to_string();
    assert!(bare.starts_with("INTERNAL: ") && !bare.contains('('));
    let full = Error::new(ErrorCode::StorageFull)
        .field("data")
        .value(7)
        .limit("more")
        .retry_after(Duration::from_millis(1500));
    assert!(
        full.to_string()
            .ends_with("(data: 7, limit: more, retry after 1500 ms)")
    );
    let long = Error::new(ErrorCode::TopicInvalid).value("é".repeat(1000));
    assert_eq!(long.found().chars().count(), 200);
}

#[test]
fn what_a_user_sent_cannot_break_the_line_of_its_error() {
    let error = "pos1-\n\u{1b}[31m"
        .parse::<airmail_model::Position>()
        .unwrap_err();
    assert!(!error.to_string().contains(char::is_control));
    let error = Namespace::check_name("a\nb").unwrap_err();
    assert!(!error.to_string().contains(char::is_control));
}

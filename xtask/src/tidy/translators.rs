//! Messages of the API (`v1`) occur where they are translated, and nowhere else: what is behind a front
//! door, or in the SDK's core, knows the words of the model alone, and another protocol needs no part of it.

use super::Complaints;
use crate::workspace::File;

/// Modules that translate between the API and the model.
const TRANSLATORS: [&str; 3] = [
    "crates/airmail-client/src",
    "crates/airmail-node/src/frontdoor/grpc",
    "crates/airmail-proto/src",
];

/// Folders in the crate of a translator that decide and translate nothing.
const CORES: [&str; 1] = ["crates/airmail-client/src/core"];

/// Programs that speak the API without the SDK, since what they measure or try is the API itself.
const SPEAKERS: [&str; 5] = [
    "crates/airmail-bench/src/raw_stream",
    "crates/airmail/src/commands/bench/memory/stream",
    "fuzz/fuzz_targets",
    "lab/airmail-lab/src/overload/generator",
    "lab/airmail-lab/src/overload/stream",
];

/// The module's name, in two halves, so that this file does not find itself.
const MODULE: (&str, &str) = ("v1", "::");

/// Complains of each line that names a message of the API where none belongs. Tests may.
pub(crate) fn check(file: &File) -> Complaints {
    let is_in = |modules: &[&str]| modules.iter().any(|module| file.is_in(module));
    if (is_in(&TRANSLATORS) && !is_in(&CORES)) || is_in(&SPEAKERS) {
        return Complaints::new();
    }
    let lines = file.product_lines();
    let named = lines.iter().enumerate().filter(|(_, line)| names_it(line));
    named
        .map(|(at, _)| {
            format!(
                "{}:{}: a message of the API outside its translators: words of airmail-model instead",
                file.path,
                at + 1
            )
        })
        .collect()
}

/// Whether the code on this line names something of the module, or the module itself to import it.
fn names_it(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let path = format!("{}{}", MODULE.0, MODULE.1);
    let is_import = code.trim_start().starts_with("use airmail_proto::");
    has_word(code, &path) || (is_import && has_word(code, MODULE.0))
}

/// Whether `word` occurs where no longer name ends in it or, if it ends in a letter, goes on after it.
fn has_word(code: &str, word: &str) -> bool {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        let goes_on = word.ends_with(is_name) && after.is_some_and(is_name);
        !before.is_some_and(is_name) && !goes_on
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        let file = File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        check(&file).len()
    }

    /// Code that names a message, as this file must not.
    fn code() -> String {
        let path = format!("{}{}", MODULE.0, MODULE.1);
        format!(
            "use airmail_proto::{};\n\nfn f(hello: {path}Hello) {{}}\n",
            MODULE.0
        )
    }

    #[test]
    fn a_message_of_the_api_behind_a_front_door_is_told() {
        for path in [
            "crates/airmail-node/src/send_queue.rs",
            "crates/airmail-node/src/frontdoor/session.rs",
            "crates/airmail-broker/src/shard.rs",
            "crates/airmail-client/src/core/producer.rs",
            "crates/airmail/src/commands/serve.rs",
        ] {
            assert_eq!(count(path, &code()), 2, "{path}");
        }
    }

    #[test]
    fn translators_and_tests_may_name_it() {
        for path in [
            "crates/airmail-node/src/frontdoor/grpc.rs",
            "crates/airmail-node/src/frontdoor/grpc/publish.rs",
            "crates/airmail-client/src/client.rs",
            "crates/airmail-proto/src/hello.rs",
            "crates/airmail-node/tests/raw_grpc/node.rs",
            "fuzz/fuzz_targets/framing.rs",
        ] {
            assert_eq!(count(path, &code()), 0, "{path}");
        }
    }

    #[test]
    fn other_names_and_words_are_no_messages() {
        let other = format!(
            "// As {0}{1}Hello.\nuse rival_{0}{1}Kind;\nlet {0} = x;\nuse airmail_proto::{0}alpha;\n",
            MODULE.0, MODULE.1
        );
        assert_eq!(count("crates/airmail-node/src/lib.rs", &other), 0);
    }
}

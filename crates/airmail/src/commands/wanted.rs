//! The topics whose messages a command is about, as they are typed: one, or a selection.

use airmail_model::selector::Glob;

/// The topics: one by its name, or those that are selected.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub struct WantedArgs {
    /// The topic
    pub topic: Option<String>,
    /// Every topic whose name begins so; each message's topic is printed before it, and a tab
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,
    /// Every topic whose name fits this, such as sensors/*/temperature: `*` is any text without `/`, `**` is any text, and `\`
    /// before a character is that character
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub pattern: Option<Glob>,
    /// Every topic of the namespace
    #[arg(long)]
    pub everything: bool,
}

/// The topics that are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// This one.
    Topic(&'a str),
    /// Those whose names begin so.
    Prefix(&'a str),
    /// Those whose names fit.
    Pattern(String),
    /// All.
    Everything,
}

impl WantedArgs {
    /// Gives the topics that are wanted.
    #[must_use]
    pub fn wanted(&self) -> Wanted<'_> {
        match (&self.topic, &self.prefix, &self.pattern) {
            (Some(topic), ..) => Wanted::Topic(topic),
            (_, Some(prefix), _) => Wanted::Prefix(prefix),
            (.., Some(pattern)) => Wanted::Pattern(pattern.to_string()),
            // One of the four is there, or the command line is refused.
            (None, None, None) => Wanted::Everything,
        }
    }

    /// Tells whether it is a selection, whose messages are of any topic.
    #[must_use]
    pub fn is_selection(&self) -> bool {
        self.topic.is_none()
    }
}

/// Reads a pattern; what is wrong with a text is said.
fn pattern(text: &str) -> Result<Glob, String> {
    Glob::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn parsed(words: &[&str]) -> Result<WantedArgs, clap::Error> {
        let cli = Cli::try_parse_from([&["airmail"], words].concat())?;
        Ok(match cli.command {
            Command::Sub(asking) => asking.at.what.wanted,
            Command::History(asking) => asking.at.what.wanted,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn exactly_one_of_a_topic_and_the_selections_is_taken() {
        for command in ["sub", "history"] {
            let takes = |words: &[&str], wanted: &Wanted<'_>| {
                let args = parsed(&[&[command], words].concat()).expect("a good command line");
                assert_eq!(args.wanted(), *wanted);
                let is_topic = matches!(wanted, Wanted::Topic(_));
                assert_eq!(args.is_selection(), !is_topic, "{words:?}");
            };
            takes(&["orders"], &Wanted::Topic("orders"));
            takes(&["--prefix", "orders/"], &Wanted::Prefix("orders/"));
            takes(&["--pattern", "a/*"], &Wanted::Pattern("a/*".into()));
            takes(&["--everything", "--json"], &Wanted::Everything);
            let refused: [&[&str]; 4] = [
                &[],
                &["orders", "--everything"],
                &["--prefix", "a", "--pattern", "b"],
                &["orders", "--prefix", "a"],
            ];
            for words in refused {
                let error = parsed(&[&[command], words].concat()).expect_err("not exactly one");
                assert_eq!(error.exit_code(), 2, "{words:?}");
            }
        }
    }

    #[test]
    fn what_is_wrong_with_a_pattern_is_said() {
        for (text, fault) in [("a\\", "ends with"), ("", "is empty")] {
            let error = parsed(&["sub", "--pattern", text]).expect_err("no pattern");
            assert_eq!(error.exit_code(), 2);
            let said = error.to_string();
            assert!(said.contains("--pattern") && said.contains(fault), "{said}");
        }
    }
}

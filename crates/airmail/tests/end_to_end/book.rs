//! The commands of the README and of `docs/` are run as they stand there, each page against a node of
//! its own.
//!
//! In a `console` block, a line that begins with `$ ` is a command, given to `sh`; the lines up to
//! the next one are what it prints, outputs and errors together. `…` in a line stands for anything;
//! a line that is `…` alone stands for any lines. A command without lines must print nothing. A line
//! `<!-- node: NAME=VALUE -->` sets a variable of the page's node.

use airmail_testkit::node::{self, Node, airmail};
use airmail_testkit::scale;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn every_command_in_the_book_does_what_is_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    let docs = fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    pages.extend(docs.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    pages.sort();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let commands = commands(&text);
        if !commands.is_empty() {
            run_page(&page, &variables(&text), &commands);
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Step {
    line: usize,
    command: String,
    expected: Vec<String>,
}

/// Variables of a page's node.
fn variables(text: &str) -> Vec<(&str, &str)> {
    let lines = text.lines();
    let set = lines.filter_map(|line| line.strip_prefix("<!-- node: ")?.strip_suffix(" -->"));
    set.filter_map(|set| set.split_once('=')).collect()
}

/// Commands in the `console` blocks of a page.
fn commands(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside {
            if let Some(command) = line.strip_prefix("$ ") {
                let command = command.to_owned();
                steps.push(Step {
                    line: number + 1,
                    command,
                    expected: Vec::new(),
                });
            } else if let Some(step) = steps.last_mut() {
                step.expected.push(line.to_owned());
            }
        }
    }
    steps
}

fn run_page(page: &Path, of_node: &[(&str, &str)], steps: &[Step]) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = node::serve(&directory.path().join("data"));
    command.envs(of_node.iter().copied());
    let node = Node::spawn(command);
    let variables = directory.path().join("variables");
    fs::write(&variables, "").unwrap();
    let tools = scale::tools();
    for step in steps {
        // What follows on the page may show what it has done.
        if step.command.starts_with("grpcurl") && scale::tool("bin/grpcurl").is_none() {
            break;
        }
        // One shell for each command; variables that one sets are there for the next.
        let script = format!(
            ". {0}; {1}\nstatus=$?; {{ test -z \"${{position+x}}\" || echo \"position='$position'\"; }} > {0}; exit $status",
            variables.display(),
            step.command,
        );
        let path = format!("{}:{}:/usr/bin:/bin", binaries().display(), tools.display());
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("{{ {script}\n}} 2>&1")])
            .current_dir(directory.path());
        shell
            .env("PATH", path)
            .env("AIRMAIL_URL", format!("airmail://{}", node.grpc));
        shell.env("AIRMAIL_ADDRESS", &node.grpc);
        let done = node::run(&mut shell, b"");
        let place = format!("{}:{}: {}", page.display(), step.line, step.command);
        assert_eq!(done.code, Some(0), "{place}\n{}", done.stdout);
        let printed: Vec<&str> = done.stdout.lines().collect();
        assert!(
            matches(&step.expected, &printed),
            "{place}\nprinted:\n{}",
            done.stdout
        );
    }
}

fn binaries() -> PathBuf {
    Path::new(airmail().get_program())
        .parent()
        .unwrap()
        .to_owned()
}

/// Whether what was printed is what is written.
fn matches(expected: &[impl AsRef<str>], printed: &[&str]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first.as_ref() == "…" => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        (Some((first, rest)), Some((line, others))) => {
            line_matches(first.as_ref(), line) && matches(rest, others)
        }
        _ => false,
    }
}

fn line_matches(expected: &str, mut line: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(rest) = parts.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    line = rest;
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return line.is_empty();
    };
    for part in middle {
        let Some((_, rest)) = line.split_once(part) else {
            return false;
        };
        line = rest;
    }
    line.ends_with(last)
}

#[test]
fn what_is_printed_otherwise_than_written_is_found() {
    assert!(matches(&["one", "two"], &["one", "two"]));
    assert!(!matches(&["one"], &["one", "two"]));
    assert!(!matches(&["one", "two"], &["one"]));
    assert!(matches(&["…", "two"], &["zero", "one", "two"]));
    assert!(matches(&["a…c"], &["abc"]));
    assert!(!matches(&["a…c"], &["abd"]));
    assert!(matches(&["a…c…"], &["abcd"]));
    let none: [&str; 0] = [];
    assert!(!matches(&none, &["anything"]));
}

#[test]
fn a_page_is_read_as_it_is_meant() {
    let steps = commands("text\n```console\n$ one\nout\n$ two\n```\n```sh\n$ three\n```\n");
    let step = |line, command: &str, expected: &[&str]| Step {
        line,
        command: command.to_owned(),
        expected: expected.iter().map(|line| (*line).to_owned()).collect(),
    };
    assert_eq!(steps, [step(3, "one", &["out"]), step(5, "two", &[])]);
}

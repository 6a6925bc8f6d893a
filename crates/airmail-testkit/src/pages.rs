//! Pages of `docs/` of which a part is made from the code. A test compares; with `AIRMAIL_REWRITE=1` it writes.

use crate::{node, scale};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const END: &str = "<!-- end of what is made -->";

/// A page, and whose tests make it.
#[derive(Debug)]
pub struct Page {
    path: PathBuf,
    /// The command that makes it.
    command: String,
}

impl Page {
    /// A page of `docs/`, made by tests of a crate.
    pub fn of(package: &str, name: &str) -> Page {
        Page {
            path: Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../docs")
                .join(name),
            command: format!("AIRMAIL_REWRITE=1 cargo test -p {package} pages"),
        }
    }

    /// Compares, or writes, the part between its two marks.
    #[track_caller]
    pub fn freshen(&self, text: &str) {
        let begin = format!("<!-- made from the code: {} -->\n", self.command);
        let old = fs::read_to_string(&self.path).unwrap();
        let (head, rest) = old.split_once(&begin).expect("the mark of the beginning");
        let (_, tail) = rest.split_once(END).expect("the mark of the end");
        let new = format!("{head}{begin}\n{}\n\n{END}{tail}", text.trim_end());
        if scale::rewrite() {
            fs::write(&self.path, new).unwrap();
        } else {
            let (page, command) = (self.path.display(), &self.command);
            assert!(new == old, "{page} is stale: {command}");
        }
    }
}

/// Output of `--help` of one of our programs, for each of its commands.
pub fn command_line(program: &str) -> String {
    let mut text = String::new();
    let mut pending: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(command) = pending.pop() {
        let mut ask = node::program(program);
        ask.args(&command).arg("--help").env("COLUMNS", "100");
        let help = node::run(&mut ask, b"").ok();
        let words = [program].into_iter();
        let words = words.chain(command.iter().map(String::as_str));
        let name = words.collect::<Vec<_>>().join(" ");
        let depth = "#".repeat(2 + command.len().min(2));
        let _ = write!(
            text,
            "{depth} `{name}`\n\n```text\n{}\n```\n\n",
            trim_lines(&help)
        );
        for subcommand in subcommands(&help).into_iter().rev() {
            pending.push([&command[..], &[subcommand]].concat());
        }
    }
    text
}

/// The names in the section "Commands:" of a help text.
fn subcommands(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// The text without blanks at the ends of its lines, and at its end.
pub fn trim_lines(text: &str) -> String {
    let lines = text.trim_end().lines().map(str::trim_end);
    lines.collect::<Vec<_>>().join("\n")
}

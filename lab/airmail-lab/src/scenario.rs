//! `airmail-lab scenario FILE`: several experiments, one after the other, with one directory for
//! their findings.
//!
//! The file is TOML. Each `[[experiment]]` has a `name` and that experiment's options, by their long
//! names without dashes (`quick = true`, `rounds = 3`); a list gives an option once for each of its
//! values. What stands above them goes for all. Every line is understood before the first experiment
//! begins; one that fails is told, and the others go on.

use crate::cli::UsageError;
use crate::experiment::{self, Experiment};
use airmail_bench::family::Stop;
use anyhow::Context as _;
use clap::Parser;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toml::{Table, Value};

/// Arguments of `airmail-lab scenario`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ScenarioArgs {
    /// TOML: [[experiment]] with a name and its options, as quick = true; options above the first go
    /// for all
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// The file.
#[derive(Debug, Deserialize)]
struct Scenario {
    #[serde(default)]
    experiment: Vec<Table>,
    /// Options of all.
    #[serde(flatten)]
    options: Table,
}

/// An experiment's command line, without what stands before its name.
#[derive(Debug, Parser)]
#[command(name = "airmail-lab")]
struct Line {
    #[command(subcommand)]
    experiment: Experiment,
}

/// Runs them: 0 if all of them ended with 0, else 1.
///
/// # Errors
/// The file cannot be read or understood ([`UsageError`]).
#[expect(clippy::print_stderr, reason = "which one, and what became of it")]
pub(super) fn run(args: &ScenarioArgs) -> anyhow::Result<ExitCode> {
    let path = args.file.display();
    let text = std::fs::read_to_string(&args.file);
    let text = text.map_err(|error| UsageError(format!("{path}: {error}")))?;
    let beside = args.file.parent().unwrap_or(Path::new(""));
    let read = read(&text, beside);
    let experiments = read.map_err(|error| UsageError(format!("{path}: {error:#}")))?;
    let stop = Stop::on_ctrl_c()?;
    let (mut all_well, count) = (true, experiments.len());
    for ((name, line), number) in experiments.iter().zip(1..) {
        if stop.is_set() {
            break;
        }
        eprintln!("airmail-lab: {name}, {number} of {count}");
        match experiment::run(&line.experiment, &stop) {
            Ok(code) => all_well &= code == ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("airmail-lab: {name}: {error:#}");
                all_well = false;
            }
        }
    }
    Ok(ExitCode::from(u8::from(!all_well)))
}

/// The experiments, with their names.
fn read(text: &str, beside: &Path) -> anyhow::Result<Vec<(String, Line)>> {
    let scenario: Scenario = toml::from_str(text)?;
    anyhow::ensure!(!scenario.experiment.is_empty(), "it has no [[experiment]]");
    let mut experiments = Vec::new();
    for (own, number) in scenario.experiment.into_iter().zip(1..) {
        let mut options = scenario.options.clone();
        options.extend(own);
        let name = options.remove("name");
        let name = name.as_ref().and_then(Value::as_str).map(str::to_owned);
        let name = name.with_context(|| format!("experiment {number}: name: is missing"))?;
        let mut words = vec!["airmail-lab".to_owned(), name.clone()];
        for (option, value) in &options {
            words.extend(spelled(option, value, beside)?);
        }
        let line = Line::try_parse_from(words);
        let line = line.with_context(|| format!("experiment {number} ({name})"))?;
        experiments.push((name, line));
    }
    Ok(experiments)
}

/// An option as it is typed. The file of hosts is looked for where the scenario is.
fn spelled(option: &str, value: &Value, beside: &Path) -> anyhow::Result<Vec<String>> {
    let flag = format!("--{option}");
    Ok(match value {
        Value::Boolean(true) => vec![flag],
        Value::Boolean(false) => Vec::new(),
        Value::String(path) if option == "hosts" => {
            vec![format!("{flag}={}", beside.join(path).display())]
        }
        Value::String(text) => vec![format!("{flag}={text}")],
        Value::Integer(number) => vec![format!("{flag}={number}")],
        Value::Float(number) => vec![format!("{flag}={number}")],
        Value::Array(values) => {
            let each = values.iter().map(|value| spelled(option, value, beside));
            each.collect::<anyhow::Result<Vec<_>>>()?.concat()
        }
        Value::Datetime(_) | Value::Table(_) => {
            anyhow::bail!("{option}: {value} is no option's value")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn debug(text: &str) -> Vec<String> {
        let read = read(text, Path::new("/there")).unwrap();
        read.iter().map(|(_, line)| format!("{line:?}")).collect()
    }

    #[test]
    fn options_of_all_hold_for_each_and_its_own_come_first() {
        let lines = debug(
            "out = \"all\"\nquick = true\nhosts = \"ours\"\n\
             [[experiment]]\nname = \"rivals\"\n\
             [[experiment]]\nname = \"rivals\"\nquick = false\nout = \"own\"\n",
        );
        assert!(lines[0].contains("quick: true") && lines[0].contains("\"all\""));
        assert!(lines[0].contains("/there/ours"), "{}", lines[0]);
        assert!(lines[1].contains("quick: false") && lines[1].contains("\"own\""));
    }

    #[test]
    fn what_no_experiment_has_is_refused_before_anything_runs() {
        for (text, word) in [
            ("", "[[experiment]]"),
            ("[[experiment]]\nquick = true", "name"),
            ("[[experiment]]\nname = \"flight\"", "flight"),
            ("[[experiment]]\nname = \"rivals\"\nwings = 2", "--wings"),
            (
                "[[experiment]]\nname = \"rivals\"\nrounds = { a = 1 }",
                "rounds",
            ),
        ] {
            let refused = read(text, Path::new("")).unwrap_err();
            assert!(format!("{refused:#}").contains(word), "{refused:#}");
        }
    }
}

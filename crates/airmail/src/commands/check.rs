//! `airmail check DIR`: reads a data directory, changes nothing, and tells whether it is sound.
//!
//! Exit code 0: sound. 1: damage was found, or the directory cannot be read, or a node would refuse
//! it. 2: wrong usage.
//!
//! `--repair-identity` is for an operator whose directory was set back to an older copy. Exit code
//! 0: done. 1: a node has the directory, or it is not there, or cannot be repaired.

use super::lines::printed;
use airmail_log::disk::{DataDir, Repair};
use airmail_log::journal::{CheckReport, Problem, check};
use airmail_model::Extent;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Letters of the first column at least.
const NAME_WIDTH: usize = 24;

/// Arguments of `airmail check`.
#[derive(clap::Args, Debug)]
pub struct CheckArgs {
    /// The data directory.
    pub dir: PathBuf,
    /// Print the report as one JSON object.
    #[arg(long)]
    pub json: bool,
    /// After restoring an older copy, before the node starts: mend the two identities from each other,
    /// and let each log begin a new life at the next start. Exit code 1 if a node has the directory.
    #[arg(long)]
    pub repair_identity: bool,
}

/// Runs it.
///
/// # Errors
/// There is no data directory, or it cannot be read.
pub fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    if args.repair_identity {
        return repair(args);
    }
    let dir = DataDir::open_read_only(&args.dir)?;
    if dir.in_use() {
        warn("a node is running on this directory: what it writes meanwhile may look damaged");
    }
    if let Some(exposed) = dir.exposed()? {
        warn(&exposed.to_string());
    }
    let mut shards = Vec::new();
    for shard in 0..dir.identity().shards {
        let mut files = dir.files_read_only(shard);
        let report = check(&mut files).with_context(|| format!("shard {shard}"))?;
        shards.push(report);
    }
    if shards.len() > 1 {
        name_by_shard(&dir, &mut shards);
    }
    if let Some(first) = shards.first_mut() {
        first.problems.splice(0..0, dir.problems());
    }
    let sound = shards.iter().all(CheckReport::is_sound);
    let text = if args.json {
        format!("{:#}\n", as_json(&shards, sound))
    } else {
        as_table(&shards, sound)
    };
    let written = std::io::stdout().write_all(text.as_bytes());
    printed(written.map_err(anyhow::Error::from))?;
    Ok(if sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Files of several shards have the same names: so each is named with its shard's directory.
fn name_by_shard(dir: &DataDir, shards: &mut [CheckReport]) {
    for (shard, report) in (0..).zip(shards) {
        let path = dir.shard(shard);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let files = report.files.iter_mut().map(|file| &mut file.name);
        let problems = report.problems.iter_mut().map(|problem| &mut problem.file);
        for file in files.chain(problems) {
            *file = format!("{name}/{file}");
        }
    }
}

/// Makes a directory that was restored from an older copy a new life of itself, and says what it did.
fn repair(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let Repair {
        mended,
        asked_before,
    } = DataDir::repair(&args.dir)?;
    let text = if args.json {
        let report = json!({ "mended": mended, "asked_before": asked_before });
        format!("{report:#}\n")
    } else {
        let identity = match mended {
            None => "sound".to_owned(),
            Some(name) => format!("{name} was written again from the other"),
        };
        let life = if asked_before {
            "was asked for already; each log begins one at the next start"
        } else {
            "each log begins one at the next start"
        };
        format!("identity: {identity}\nnew life: {life}\n")
    };
    let written = std::io::stdout().write_all(text.as_bytes());
    printed(written.map_err(anyhow::Error::from))?;
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stderr, reason = "a command's remark")]
fn warn(text: &str) {
    eprintln!("airmail: {text}");
}

fn as_table(shards: &[CheckReport], sound: bool) -> String {
    let names = shards.iter().flat_map(|report| &report.files);
    let width = names.map(|file| file.name.len() + 1).max().unwrap_or(0);
    let row = |cells: [&str; 8]| row(width.max(NAME_WIDTH), cells);
    let mut rows = vec![row([
        "log", "first", "next", "batches", "messages", "bytes", "lost", "skipped",
    ])];
    for log in shards.iter().flat_map(|report| &report.logs) {
        let numbers =
            |extents: &[Extent]| -> u64 { extents.iter().copied().map(Extent::numbers).sum() };
        rows.push(row([
            &log.log.to_string(),
            &log.first.to_string(),
            &log.next.to_string(),
            &log.batches.to_string(),
            &log.records.to_string(),
            &log.bytes.to_string(),
            &numbers(&log.lost).to_string(),
            &numbers(&log.skipped).to_string(),
        ]));
    }
    rows.push(String::new());
    rows.push(row([
        "file", "bytes", "used", "batches", "messages", "commands", "", "",
    ]));
    for file in shards.iter().flat_map(|report| &report.files) {
        rows.push(row([
            &file.name,
            &file.bytes.to_string(),
            &file.end.to_string(),
            &file.batches.to_string(),
            &file.records.to_string(),
            &file.commands.to_string(),
            "",
            "",
        ]));
    }
    let problems: Vec<&Problem> = shards.iter().flat_map(|report| &report.problems).collect();
    if !problems.is_empty() {
        rows.push(String::new());
    }
    for problem in &problems {
        rows.push(format!("damage: {problem}"));
    }
    rows.push(String::new());
    rows.push(if sound {
        "sound".to_owned()
    } else {
        format!("damaged: {} places", problems.len())
    });
    let lines = rows.iter().map(|line| line.trim_end());
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// One line of a table: a name of up to `width` letters, and seven numbers.
fn row(width: usize, [name, a, b, c, d, e, f, g]: [&str; 8]) -> String {
    format!("{name:<width$}{a:>12}{b:>12}{c:>12}{d:>12}{e:>14}{f:>12}{g:>12}")
}

fn as_json(shards: &[CheckReport], sound: bool) -> Value {
    let logs = shards.iter().enumerate();
    let logs = logs.flat_map(|(shard, report)| report.logs.iter().map(move |log| (shard, log)));
    let logs = logs.map(|(shard, log)| {
        let pairs = |extents: &[Extent]| -> Vec<[u64; 2]> {
            let pair = |extent: &Extent| [extent.first.0, extent.last.0];
            extents.iter().map(pair).collect()
        };
        json!({
            "log": log.log.to_string(),
            "shard": shard,
            "first": log.first.0,
            "next": log.next.0,
            "batches": log.batches,
            "messages": log.records,
            "bytes": log.bytes,
            "lost": pairs(&log.lost),
            "skipped": pairs(&log.skipped),
        })
    });
    let files = shards.iter().flat_map(|report| &report.files).map(|file| {
        json!({
            "name": file.name,
            "bytes": file.bytes,
            "used": file.end,
            "batches": file.batches,
            "messages": file.records,
            "commands": file.commands,
        })
    });
    let problems = shards.iter().flat_map(|report| &report.problems);
    let problems = problems.map(|problem| {
        json!({
            "file": problem.file,
            "at": problem.at,
            "log": problem.log.map(|log| log.to_string()),
            "number": problem.number.map(|number| number.0),
            "reason": problem.reason.to_string(),
        })
    });
    json!({
        "sound": sound,
        "logs": logs.collect::<Vec<_>>(),
        "files": files.collect::<Vec<_>>(),
        "problems": problems.collect::<Vec<_>>(),
    })
}

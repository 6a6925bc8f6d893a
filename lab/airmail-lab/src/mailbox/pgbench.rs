//! Runs pgbench, PostgreSQL's own closed-loop clients, and reads its record of every transaction.

use super::case::{Case, Subject};
use super::database::program;
use super::statements::{Script, scripts};
use airmail_bench::clock::now_us;
use airmail_bench::family::Stop;
use airmail_experiments::mailbox::record::Sink;
use airmail_experiments::mailbox::{Call, Kind, Outcome};
use airmail_mailbox::postgres::SESSION_OPTIONS;
use airmail_model::clock::{Clock as _, SystemClock};
use anyhow::{Context as _, bail};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Beginning of its files' names.
const PREFIX: &str = "calls";
const LOOK: Duration = Duration::from_millis(50);

/// A run that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended by itself is only waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a case for `seconds`, and notes its calls.
pub(super) fn run(
    case: &Case,
    url: &str,
    seconds: u64,
    directory: &Path,
    sink: &mut Sink,
    stop: &Stop,
) -> anyhow::Result<()> {
    let scripts = scripts(case);
    let mut command = Command::new(program("pgbench")?);
    command.args(["-n", "-M", "prepared", "-j", "2"]);
    command.args(["-c", &case.clients.to_string(), "-T", &seconds.to_string()]);
    command.args(["-l", &format!("--log-prefix={PREFIX}")]);
    for (number, script) in scripts.iter().enumerate() {
        let path = directory.join(format!("{number}.sql"));
        fs::write(&path, &script.text)?;
        command.arg(format!("--file={}@{}", path.display(), script.weight));
    }
    if case.subject == Subject::Functions {
        command.env("PGOPTIONS", SESSION_OPTIONS);
    }
    let said = directory.join("said");
    command.arg(url).current_dir(directory);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let child = command.stderr(fs::File::create(&said)?).spawn();
    let mut running = Running(child.context("cannot start pgbench")?);
    let status = loop {
        if let Some(status) = running.0.try_wait()? {
            break status;
        }
        if stop.is_set() {
            bail!("stopped");
        }
        std::thread::sleep(LOOK);
    };
    if !status.success() {
        bail!("pgbench: {}", fs::read_to_string(said)?.trim());
    }
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(PREFIX) {
            read(&fs::read_to_string(&path)?, &scripts, ahead_us(), sink)?;
        }
    }
    sink.flush();
    Ok(())
}

/// Lead of the wall clock over the bench's, in microseconds.
fn ahead_us() -> i64 {
    SystemClock::new().now().wall.0 - now_us().cast_signed()
}

/// Notes the transactions of a file: client, number, time, script, and the wall clock's seconds and
/// microseconds at its end.
fn read(text: &str, scripts: &[Script], ahead_us: i64, sink: &mut Sink) -> anyhow::Result<()> {
    for line in text.lines() {
        let call = parse(line, scripts, ahead_us);
        sink.note(call.with_context(|| format!("pgbench wrote {line:?}"))?);
    }
    Ok(())
}

fn parse(line: &str, scripts: &[Script], ahead_us: i64) -> Option<Call> {
    let mut words = line.split(' ');
    let client = words.next()?.parse().ok()?;
    let time = words.nth(1)?;
    let script: usize = words.next()?.parse().ok()?;
    let (seconds, micros): (i64, i64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let kind = scripts.get(script)?.kind;
    let ended_us = seconds * 1_000_000 + micros - ahead_us;
    let failed = Call {
        client,
        kind,
        ended_us: u64::try_from(ended_us).ok()?,
        took_us: 0,
        outcome: Outcome::Failed,
        messages: 0,
    };
    Some(match time.parse() {
        Ok(took_us) => Call {
            took_us,
            outcome: Outcome::Done,
            // It does not say what came; who reads nothing counts as who reads one.
            messages: u32::from(matches!(
                kind,
                Kind::Send | Kind::Read | Kind::ReadBroadcast
            )),
            ..failed
        },
        // `failed` or `skipped` in place of a time.
        Err(_) => failed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_experiments::mailbox::Mix;

    #[test]
    fn a_line_is_a_call_by_the_bench_s_clock() {
        let scripts = scripts(&Case::of(Subject::Statements, Mix::Workload, 0, 10));
        let call = parse(
            "7 199 2241 1 1175850568 995598",
            &scripts,
            1_175_850_000_000_000,
        );
        let call = call.unwrap();
        assert_eq!((call.client, call.kind), (7, scripts[1].kind));
        assert_eq!((call.ended_us, call.took_us), (568_995_598, 2241));
        assert_eq!(call.outcome, Outcome::Done);
        let failed = parse("7 199 failed 1 1175850568 995598", &scripts, 0).unwrap();
        assert_eq!(failed.outcome, Outcome::Failed);
        assert!(parse("7 199", &scripts, 0).is_none());
    }
}

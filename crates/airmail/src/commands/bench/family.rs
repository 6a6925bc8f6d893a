//! A run over several processes: one leads, the others each do a share.
//!
//! Leader and part talk by lines: the part is given its job as JSON on standard input, says `ready`,
//! is told `start TIME`; says `published ACKS`, is told `total ACKS`; and ends with what it found as
//! JSON. A part whose leader is gone reads the end of its input, and fails.

use std::io::{BufRead, BufReader, Lines, Stdin, Write, stdin};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;

use airmail_bench::part::Part;
use airmail_bench::run::{Job, LevelFile, Meeting, Share, start_us};
use airmail_bench::system::Failure;
use airmail_bench::{Progress, Target};
use anyhow::{Context as _, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Runs a job as several processes, and adds up what they found.
pub(super) fn lead(job: &Job) -> anyhow::Result<Part> {
    let parts = job.settings.processes;
    let levels = LevelFile::make()?;
    let mut members = Vec::new();
    for part in 0..parts {
        let mut job = job.clone();
        job.levels = (parts > 1).then(|| levels.path());
        job.share = Share { part, parts };
        members.push(Member::start("part", &job)?);
        // The first makes what the others need.
        if part == 0 {
            members[0].hear("prepared")?;
        }
    }
    for member in &mut members {
        member.hear("ready")?;
    }
    let start = format!("start {}", start_us());
    let mut total = 0;
    for member in &mut members {
        member.tell(&start)?;
    }
    for member in &mut members {
        total += member.hear("published")?.parse::<u64>()?;
    }
    let mut sum = Part::default();
    for member in &mut members {
        member.tell(&format!("total {total}"))?;
    }
    for (member, place) in members.into_iter().zip(0..) {
        let part: Part = member.end()?;
        if place == 0 {
            sum = part;
        } else {
            sum.add(&part);
        }
    }
    Ok(sum)
}

/// Another process of this program, and what it says.
pub(super) struct Member {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Member {
    /// Starts `airmail bench WORD`, and gives it its task as JSON.
    pub(super) fn start(word: &str, task: &impl Serialize) -> anyhow::Result<Member> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["bench", word])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let mut member = Member {
            process,
            input: input.context("a part has no input")?,
            output: BufReader::new(output.context("a part has no output")?).lines(),
        };
        member.tell(&serde_json::to_string(task)?)?;
        Ok(member)
    }

    pub(super) fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        Ok(writeln!(self.input, "{line}")?)
    }

    fn line(&mut self) -> anyhow::Result<String> {
        match self.output.next() {
            Some(line) => Ok(line?),
            None => bail!("a part of the run has failed"),
        }
    }

    /// What stands behind the word that is due.
    pub(super) fn hear(&mut self, word: &str) -> anyhow::Result<String> {
        let line = self.line()?;
        let rest = line.strip_prefix(word);
        Ok(rest
            .with_context(|| format!("a part said {line:?}, not {word}"))?
            .trim()
            .to_owned())
    }

    /// Its last line, which is JSON.
    pub(super) fn end<T: DeserializeOwned>(mut self) -> anyhow::Result<T> {
        let found = serde_json::from_str(&self.line()?)?;
        self.process.wait()?;
        Ok(found)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // One that has ended is not there to be killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Does one share, as it is told on standard input.
pub(super) fn take_part() -> anyhow::Result<ExitCode> {
    let mut leader = Leader(BufReader::new(stdin()).lines());
    let job: Job = serde_json::from_str(&leader.line()?)?;
    let target: Target = job.target.parse()?;
    let runtime = super::runtime(job.settings.rate.is_some())?;
    let progress = Arc::new(Progress::default());
    let part = runtime.block_on(target.run(job, &mut leader, progress))?;
    say(&serde_json::to_string(&part)?)?;
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// Who leads this process.
struct Leader(Lines<BufReader<Stdin>>);

impl Leader {
    fn line(&mut self) -> Result<String, Failure> {
        let line = self
            .0
            .next()
            .ok_or_else(|| Failure::new("the run's leader is gone"))?;
        line.map_err(Failure::new)
    }

    /// The number behind the word that is due.
    fn number(&mut self, word: &str) -> Result<u64, Failure> {
        let line = self.line()?;
        let number = line.strip_prefix(word).map(str::trim);
        let number = number.ok_or_else(|| Failure::new(format!("{line:?} is not {word}")))?;
        number.parse().map_err(Failure::new)
    }
}

/// Its waits block: beside them only tasks on the runtime's own threads have anything to do.
impl Meeting for Leader {
    async fn prepared(&mut self) -> Result<(), Failure> {
        say("prepared")
    }

    async fn ready(&mut self) -> Result<u64, Failure> {
        say("ready")?;
        self.number("start")
    }

    async fn published(&mut self, acknowledged: u64) -> Result<u64, Failure> {
        say(&format!("published {acknowledged}"))?;
        self.number("total")
    }
}

/// Says a line to whoever started this process.
pub(super) fn say(line: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")
        .and_then(|()| output.flush())
        .map_err(Failure::new)
}

//! `airmail clock`: shows whether a node believes its wall clock; `accept` has it believed.

use super::lines::{printed, time_text};
use super::target::Target;
use crate::cli::ClientOptions;
use airmail_client::NodeClock;
use airmail_model::{AppendTime, Wall};
use serde::Serialize;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `airmail clock`.
#[derive(clap::Args, Debug)]
pub struct ClockArgs {
    /// The action; without one, the clock is shown
    #[command(subcommand)]
    pub action: Option<Action>,
    /// Print it as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// Actions on the clock.
#[derive(clap::Subcommand, Debug)]
pub enum Action {
    /// Believe the wall clock as it is now: retention by time goes by it at once
    Accept,
}

/// Runs it.
///
/// # Errors
/// No node answers.
pub async fn run(args: ClockArgs, options: &ClientOptions) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(options, None)?;
    let client = target.client().connect().await?;
    let admin = client.admin();
    let clock = match args.action {
        None => admin.clock().await?,
        Some(Action::Accept) => admin.accept_clock().await?,
    };
    printed(show(&mut io::stdout(), &clock, args.json))?;
    client.close().await?;
    Ok(ExitCode::SUCCESS)
}

/// The clock's state as JSON.
#[derive(Serialize)]
struct Shown {
    wall: String,
    trusted: String,
    held: Option<ShownJump>,
    jumps: u64,
}

#[derive(Serialize)]
struct ShownJump {
    by_us: i64,
    noticed: String,
    left_ms: u128,
}

fn text(time: Wall) -> String {
    time_text(AppendTime(time.0))
}

/// Whole seconds, as people write them.
fn span(time: Duration) -> impl std::fmt::Display {
    humantime::format_duration(Duration::from_secs(time.as_secs()))
}

fn show(out: &mut impl Write, clock: &NodeClock, json: bool) -> anyhow::Result<()> {
    let (wall, trusted) = (text(clock.wall), text(clock.trusted));
    if json {
        let shown = Shown {
            wall,
            trusted,
            held: clock.held.map(|held| ShownJump {
                by_us: held.by_us,
                noticed: text(held.noticed),
                left_ms: held.left.as_millis(),
            }),
            jumps: clock.jumps,
        };
        writeln!(out, "{}", serde_json::to_string(&shown)?)?;
        return Ok(());
    }
    writeln!(out, "wall     {wall}")?;
    writeln!(out, "trusted  {trusted}")?;
    match clock.held {
        None => writeln!(out, "jump     none")?,
        Some(held) => {
            let far = span(Duration::from_micros(held.by_us.unsigned_abs()));
            let direction = if held.by_us < 0 { "back" } else { "ahead" };
            let (noticed, left) = (text(held.noticed), span(held.left));
            writeln!(out, "jump     {far} {direction}, noticed at {noticed}")?;
            writeln!(
                out,
                "held     for {left} yet; believed at once by `airmail clock accept`"
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_client::ClockJump;

    fn shown(clock: &NodeClock, json: bool) -> String {
        let mut out = Vec::new();
        show(&mut out, clock, json).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_held_jump_is_shown_with_how_far_since_when_and_until_when() {
        let mut clock = NodeClock {
            wall: Wall(1_800_000_000_000_000),
            trusted: Wall(1_799_913_600_000_000),
            held: Some(ClockJump {
                by_us: 86_400_000_000,
                noticed: Wall(1_799_913_000_000_000),
                left: Duration::from_secs(85_800),
            }),
            jumps: 1,
        };
        let text = shown(&clock, false);
        assert!(
            text.contains("jump     1day ahead, noticed at 2027-01-14T"),
            "{text}"
        );
        assert!(text.contains("held     for 23h 50m yet"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&shown(&clock, true)).unwrap();
        assert_eq!(json["held"]["by_us"], 86_400_000_000_i64);
        clock.held = None;
        assert!(shown(&clock, false).ends_with("jump     none\n"));
        let json: serde_json::Value = serde_json::from_str(&shown(&clock, true)).unwrap();
        assert!(json["held"].is_null());
    }
}

//! The live view on a terminal: asks the node, draws, listens to keys.

use super::view::View;
use airmail_client::Admin;
use anyhow::Context as _;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use std::time::Duration;
use tokio::sync::mpsc;

/// Watches until a key ends it. The terminal is as before afterwards, also after a panic.
pub(super) async fn watch(admin: &Admin, node: &str, interval: Duration) -> anyhow::Result<()> {
    let mut terminal = ratatui::try_init().context("this terminal cannot be drawn on")?;
    let result = follow(&mut terminal, admin, node, interval).await;
    ratatui::restore();
    result
}

async fn follow(
    terminal: &mut DefaultTerminal,
    admin: &Admin,
    node: &str,
    interval: Duration,
) -> anyhow::Result<()> {
    let mut keys = keys()?;
    let mut view = View {
        node: node.to_owned(),
        ..View::default()
    };
    let mut ticks = tokio::time::interval(interval);
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                let Some(asked) = unless_ended(admin.flow(), &mut keys).await else {
                    return Ok(());
                };
                match asked {
                    Ok(gates) => (view.gates, view.trouble) = (gates, None),
                    // It may come back: what was heard last stays in sight.
                    Err(error) => view.trouble = Some(error.to_string()),
                }
            }
            event = keys.recv() => match event {
                Some(event) if !ends(&event) => {}
                _ => return Ok(()),
            },
        }
        terminal.draw(|frame| view.draw(frame))?;
    }
}

/// Waits for an answer; `None` if a key ends the view before, as a node may take long to answer.
async fn unless_ended<T>(
    answer: impl Future<Output = T>,
    keys: &mut mpsc::Receiver<Event>,
) -> Option<T> {
    tokio::pin!(answer);
    loop {
        tokio::select! {
            answer = &mut answer => return Some(answer),
            event = keys.recv() => match event {
                Some(event) if !ends(&event) => {}
                _ => return None,
            },
        }
    }
}

fn ends(event: &Event) -> bool {
    let Event::Key(key) = event else {
        return false;
    };
    let interrupted =
        key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
    interrupted || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}

/// Reads typed keys in a thread of its own: reading blocks.
fn keys() -> anyhow::Result<mpsc::Receiver<Event>> {
    let (sender, receiver) = mpsc::channel(16);
    let read = move || {
        while let Ok(event) = event::read() {
            if sender.blocking_send(event).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("keys".into())
        .spawn(read)?;
    Ok(receiver)
}

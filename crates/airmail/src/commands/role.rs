//! `airmail role`: creates, lists and deletes the roles that messages are addressed to.

use super::lines::printed;
use super::target::Target;
use crate::cli::ClientOptions;
use airmail_client::Client;
use airmail_model::Role;
use serde::Serialize;
use std::io::Write as _;
use std::process::ExitCode;

/// Arguments of `airmail role`.
#[derive(clap::Args, Debug)]
pub struct RoleArgs {
    /// The action.
    #[command(subcommand)]
    pub action: Action,
}

/// Actions on roles.
#[derive(clap::Subcommand, Debug)]
pub enum Action {
    /// Create a role
    Create {
        /// Its name
        name: String,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// List all roles
    List {
        /// Print a line of JSON for each
        #[arg(long)]
        json: bool,
    },
    /// Delete a role. What is addressed to it stays so, and nobody who comes later has it
    Delete {
        /// Its name
        name: String,
    },
}

/// A role as JSON.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    name: &'a str,
    id: u32,
}

fn show(role: &Role, json: bool) -> anyhow::Result<()> {
    let (name, id) = (role.name.as_str(), role.id.0);
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string(&Shown { name, id })?)?;
    } else {
        writeln!(out, "{name}\tid {id}")?;
    }
    Ok(())
}

/// Runs it.
///
/// # Errors
/// No node answers, or it refuses.
pub async fn run(args: RoleArgs, options: &ClientOptions) -> anyhow::Result<ExitCode> {
    let client = Target::resolve(options, None)?.client().connect().await?;
    printed(act(args.action, &client).await)?;
    client.close().await?;
    Ok(ExitCode::SUCCESS)
}

async fn act(action: Action, client: &Client) -> anyhow::Result<()> {
    let admin = client.admin();
    match action {
        Action::Create { name, json } => show(&admin.create_role(&name).await?, json),
        Action::List { json } => {
            for role in admin.roles().await? {
                show(&role, json)?;
            }
            Ok(())
        }
        Action::Delete { name } => Ok(admin.delete_role(&name).await?),
    }
}

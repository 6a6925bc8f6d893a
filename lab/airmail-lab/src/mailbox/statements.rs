//! Scripts for pgbench: the paper's tables and the bare statements on them, a table in pgmq's form,
//! and this store's functions.
//!
//! Accounts are numbered from 1, one for each client; queues are 1 and 2. A script's number is its
//! place in the list.

use super::case::{Case, Subject};
use airmail_experiments::mailbox::Kind;
use airmail_experiments::mailbox::mix::{QUEUES, REMOVED_PERCENT};

/// The tables and indexes of chapter 2. The content may be longer than 2,000, as in section 6.3.4.
const PAPER: &str = "
    CREATE TABLE users (id serial PRIMARY KEY, name varchar(255) UNIQUE, created_at timestamp);
    CREATE TABLE queues (id serial PRIMARY KEY, name varchar(255) UNIQUE, created_at timestamp);
    CREATE TABLE messages (
        id serial PRIMARY KEY, queue_id int REFERENCES queues (id) ON DELETE CASCADE,
        send_id int REFERENCES users (id), recv_id int REFERENCES users (id), content text,
        created_at timestamp);
    CREATE INDEX ON messages (recv_id, queue_id);
    CREATE INDEX ON messages (queue_id, recv_id, id);
    CREATE INDEX ON messages (send_id, recv_id, id);";

/// A queue as pgmq makes it (`pgmq.create`).
const PGMQ: &str = "
    CREATE TABLE q_work (
        msg_id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, read_ct int NOT NULL DEFAULT 0,
        enqueued_at timestamptz NOT NULL DEFAULT now(), vt timestamptz NOT NULL, message jsonb);
    CREATE INDEX ON q_work (vt ASC);";

/// A script of pgbench's, and how often it is chosen.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) kind: Kind,
    pub(super) weight: u32,
    pub(super) text: String,
}

/// Statements that make the tables that a subject uses, if nodes do not: with an account for each
/// client and one for the backlog, and with the backlog.
pub(super) fn tables(case: &Case) -> Option<String> {
    let (accounts, backlog) = (case.clients + 1, case.backlog);
    match case.subject {
        Subject::Service | Subject::Functions => None,
        Subject::Pgmq => Some(PGMQ.to_owned()),
        Subject::Statements => Some(format!(
            "{PAPER}
             INSERT INTO users (name, created_at)
                 SELECT 'user ' || n, now() FROM generate_series(1, {accounts}) n;
             INSERT INTO queues (name, created_at)
                 SELECT 'queue ' || n, now() FROM generate_series(1, {QUEUES}) n;
             INSERT INTO messages (queue_id, send_id, recv_id, content, created_at)
                 SELECT 1 + n % {QUEUES}, 1, {accounts}, repeat('x', 200), now()
                 FROM generate_series(1, {backlog}) n;
             ANALYZE;"
        )),
    }
}

/// Statement that fills a store's queues with messages for an account that nobody reads as.
pub(super) fn backlog(queues: &[i32], sender: i32, receiver: i32, messages: u64) -> String {
    let queue = format!("(ARRAY{queues:?})[1 + n % {}]", queues.len());
    format!(
        "SELECT count(*) FROM (
             SELECT airmail.send_many(
                 array_agg({queue}), array_agg({sender}), array_agg({receiver}),
                 array_agg(convert_to(repeat('x', 200), 'UTF8')), array_agg(0::smallint),
                 array_agg(NULL::text), array_agg(0::bigint), array_agg(NULL::bigint))
             FROM generate_series(1, {messages}) n GROUP BY n / 1000) sent"
    )
}

/// The scripts of a case that pgbench runs.
pub(super) fn scripts(case: &Case) -> Vec<Script> {
    match case.subject {
        Subject::Pgmq => pgmq(case),
        Subject::Statements => mixed(case, bare),
        Subject::Functions => mixed(case, function),
        Subject::Service => Vec::new(),
    }
}

fn pgmq(case: &Case) -> Vec<Script> {
    let size = case.sizes.first().copied().unwrap_or(200) as usize;
    let message = format!("\"{}\"", "x".repeat(size.saturating_sub(2)));
    let send = format!(
        "INSERT INTO q_work (vt, message) VALUES (clock_timestamp(), '{message}') RETURNING msg_id;"
    );
    let pop = "WITH oldest AS (
            SELECT msg_id FROM q_work WHERE vt <= clock_timestamp()
            ORDER BY msg_id LIMIT 1 FOR UPDATE SKIP LOCKED)
        DELETE FROM q_work USING oldest WHERE q_work.msg_id = oldest.msg_id RETURNING q_work.*;";
    let script = |kind, text: &str| Script {
        kind,
        weight: 1,
        // pgbench takes a statement of several lines.
        text: text.to_owned(),
    };
    vec![script(Kind::Send, &send), script(Kind::Read, pop)]
}

/// One request of a mix, in detail.
#[derive(Clone, Copy, Debug)]
enum Detail {
    Send { broadcast: bool, size: u32 },
    Read { broadcast: bool, removes: bool },
    Find,
    Queues,
}

/// A script for each detail of a mix, with its probability in units that are whole for all.
fn mixed(case: &Case, statement: fn(Detail) -> String) -> Vec<Script> {
    let mut scripts = Vec::new();
    let sizes = case.sizes.len() as u32;
    for (kind, share) in case.mix.shares() {
        let details: Vec<(Detail, u32)> = match kind {
            Kind::Send => {
                let broadcasts = case.mix.broadcast_percent();
                let of_size = |size: &u32| {
                    let detail = |broadcast| Detail::Send {
                        broadcast,
                        size: *size,
                    };
                    [
                        (detail(false), 100 - broadcasts),
                        (detail(true), broadcasts),
                    ]
                };
                case.sizes.iter().flat_map(of_size).collect()
            }
            Kind::Read | Kind::ReadBroadcast => {
                let broadcast = *kind == Kind::ReadBroadcast;
                let detail = |removes| Detail::Read { broadcast, removes };
                vec![
                    (detail(true), REMOVED_PERCENT * sizes),
                    (detail(false), (100 - REMOVED_PERCENT) * sizes),
                ]
            }
            Kind::Find => vec![(Detail::Find, 100 * sizes)],
            Kind::Queues => vec![(Detail::Queues, 100 * sizes)],
            Kind::Ping => Vec::new(),
        };
        for (detail, parts) in details.into_iter().filter(|(_, parts)| *parts > 0) {
            scripts.push(Script {
                kind: *kind,
                weight: share * parts,
                text: format!("{}{}\n", choices(case), statement(detail)),
            });
        }
    }
    scripts
}

fn choices(case: &Case) -> String {
    let clients = case.clients;
    format!(
        "\\set queue random(1, {QUEUES})\n\\set me :client_id + 1\n\\set other random(1, {clients})\n"
    )
}

fn bare(detail: Detail) -> String {
    match detail {
        Detail::Send { broadcast, size } => {
            let receiver = if broadcast { "NULL" } else { ":other" };
            let content = "x".repeat(size as usize);
            format!(
                "INSERT INTO messages (queue_id, send_id, recv_id, content, created_at) \
                 VALUES (:queue, :me, {receiver}, '{content}', now()) RETURNING id;"
            )
        }
        Detail::Read { broadcast, removes } => {
            let receiver = if broadcast { "IS NULL" } else { "= :me" };
            let oldest = format!(
                "FROM messages WHERE queue_id = :queue AND recv_id {receiver} ORDER BY id LIMIT 1"
            );
            let columns = "id, send_id, recv_id, created_at, content";
            if removes {
                format!(
                    "DELETE FROM messages WHERE id = (SELECT id {oldest} FOR UPDATE SKIP LOCKED) \
                     RETURNING {columns};"
                )
            } else {
                format!("SELECT {columns} {oldest};")
            }
        }
        Detail::Find => "SELECT id, send_id, recv_id, created_at, content FROM messages \
             WHERE send_id = :other AND recv_id = :me ORDER BY id LIMIT 1;"
            .to_owned(),
        Detail::Queues => "SELECT DISTINCT queue_id FROM messages WHERE recv_id = :me;".to_owned(),
    }
}

fn function(detail: Detail) -> String {
    match detail {
        Detail::Send { broadcast, size } => {
            let receiver = if broadcast { "0" } else { ":other" };
            let content = "x".repeat(size as usize);
            format!(
                "SELECT * FROM airmail.send_many(ARRAY[:queue::int], ARRAY[:me::int], \
                 ARRAY[{receiver}::int], ARRAY['{content}'::bytea], ARRAY[0::smallint], \
                 ARRAY[NULL::text], ARRAY[0::bigint], ARRAY[NULL::bigint]);"
            )
        }
        Detail::Read { broadcast, removes } => {
            let receiver = if broadcast { "0" } else { ":me" };
            let (name, lease) = if removes {
                ("take_many", ", NULL::bigint")
            } else {
                ("peek_many", "")
            };
            format!(
                "SELECT * FROM airmail.{name}(ARRAY[:queue::int], ARRAY[:me::int], \
                 ARRAY[{receiver}::int], ARRAY[1], ARRAY[0::bigint]{lease});"
            )
        }
        Detail::Find => "SELECT * FROM airmail.find_from(:me::int, :other::int);".to_owned(),
        Detail::Queues => "SELECT airmail.queues_for(:me::int);".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_experiments::mailbox::Mix;

    #[test]
    fn scripts_are_as_probable_as_the_paper_says() {
        for mix in [Mix::Workload, Mix::Database] {
            let case = Case::of(Subject::Statements, mix, 0, 10);
            let scripts = scripts(&case);
            let all: u32 = scripts.iter().map(|script| script.weight).sum();
            for (kind, share) in mix.shares() {
                let of_kind = scripts.iter().filter(|script| script.kind == *kind);
                let weight: u32 = of_kind.map(|script| script.weight).sum();
                assert_eq!(weight * 100, share * all, "{mix:?} {kind:?}");
            }
            let removing = scripts
                .iter()
                .filter(|script| script.text.contains("DELETE"));
            let reads = scripts
                .iter()
                .filter(|script| matches!(script.kind, Kind::Read | Kind::ReadBroadcast));
            let (removing, reads): (u32, u32) = (
                removing.map(|script| script.weight).sum(),
                reads.map(|script| script.weight).sum(),
            );
            assert_eq!(removing * 100, REMOVED_PERCENT * reads);
        }
    }

    #[test]
    fn half_of_the_messages_are_of_either_size() {
        let case = Case::of(Subject::Statements, Mix::Workload, 0, 10);
        let weight = |bytes: usize| -> u32 {
            let scripts = scripts(&case).into_iter();
            let of_size =
                scripts.filter(|one| one.text.contains(&format!("'{}'", "x".repeat(bytes))));
            of_size.map(|script| script.weight).sum()
        };
        assert_eq!(weight(200), weight(2000));
        assert!(weight(200) > 0);
    }
}

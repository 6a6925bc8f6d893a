//! HTTP: `/healthz`, `/readyz`, `/metrics`. On a thread of its own, so that it answers when the
//! shard does not.

use super::link::Link;
use super::metrics::{Metrics, Snapshot};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long the shard may take to answer before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone)]
struct Shared {
    link: Link,
    metrics: Arc<Metrics>,
}

/// Serves until `stop`.
pub(crate) async fn serve(
    listener: TcpListener,
    link: Link,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(text))
        .with_state(Shared { link, metrics });
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn readyz(State(shared): State<Shared>) -> Response {
    if let Err(error) = shared.link.check_up() {
        return unavailable(&error.to_string());
    }
    match tokio::time::timeout(PATIENCE, shared.link.snapshot()).await {
        Ok(Ok(snapshot)) => readiness(&snapshot),
        Ok(Err(error)) => unavailable(&error.to_string()),
        Err(_) => unavailable("the shard does not answer"),
    }
}

/// A node whose disk is full still answers: reading goes on.
fn readiness(snapshot: &Snapshot) -> Response {
    match &snapshot.trouble {
        _ if !snapshot.ready => unavailable("the shard is not ready"),
        None => "ready\n".into_response(),
        Some(trouble) if trouble.full => {
            format!("ready to read; the disk is full: {}\n", trouble.error).into_response()
        }
        Some(trouble) => unavailable(&format!("the storage fails: {}", trouble.error)),
    }
}

async fn text(State(shared): State<Shared>) -> Response {
    let snapshot = match tokio::time::timeout(PATIENCE, shared.link.snapshot()).await {
        Ok(Ok(snapshot)) => snapshot,
        Ok(Err(error)) => return unavailable(&error.to_string()),
        Err(_) => return unavailable("the shard does not answer"),
    };
    match shared.metrics.text(snapshot) {
        Ok(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(_) => unavailable("metrics cannot be written"),
    }
}

fn unavailable(why: &str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response()
}

//! The collector's metrics over HTTP: `/metrics`, and `/healthz` for who only asks whether it is there.

use airmail_collect::shell::Metrics;
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use std::future::Future;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Serves until `stop`.
pub(super) async fn serve(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/metrics", get(text))
        .with_state(metrics);
    axum::serve(listener, router)
        .with_graceful_shutdown(stop)
        .await
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn text(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics.text())
}

//! The collector's metrics over HTTP: `/metrics`, and `/healthz` for a check that it is there.
//! Requests that a browser makes for another site's page are refused, like a node does.

use airmail_collect::shell::Metrics;
use airmail_node::same_origin::SameOrigin;
use axum::Router;
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::IncomingStream;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// The address that a connection was made to; `None` if the system does not know it any more.
#[derive(Clone, Copy, Debug)]
struct Reached(Option<IpAddr>);

impl Connected<IncomingStream<'_, TcpListener>> for Reached {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Reached {
        let address = stream.io().local_addr();
        Reached(address.ok().map(|address| address.ip()))
    }
}

/// Serves what is `own` until `stop`.
pub(super) async fn serve(
    listener: TcpListener,
    own: SameOrigin,
    metrics: Arc<Metrics>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/metrics", get(text))
        .layer(from_fn_with_state(own, check))
        .with_state(metrics);
    axum::serve(
        listener,
        router.into_make_service_with_connect_info::<Reached>(),
    )
    .with_graceful_shutdown(stop)
    .await
}

async fn check(
    State(own): State<SameOrigin>,
    ConnectInfo(Reached(reached)): ConnectInfo<Reached>,
    request: Request,
    next: Next,
) -> Response {
    let Some(reached) = reached else {
        // Whose connection has no address, has gone.
        return StatusCode::FORBIDDEN.into_response();
    };
    match own.check(reached, &request) {
        Ok(()) => next.run(request).await,
        Err(foreign) => foreign.into_response(),
    }
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn text(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics.text())
}

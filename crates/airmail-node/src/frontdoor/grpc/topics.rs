//! ListTopics: the topics of a namespace that hold messages, a page at a time.

use super::{Services, principal_of};
use airmail_broker::{Command, Outcome, Principal};
use airmail_log::TopicPage;
use airmail_model::{Error, ErrorCode};
use airmail_proto::v1;
use tonic::Request;

/// Topics of a page where the request does not say.
const PAGE: u32 = 1_000;
/// Topics of a page at most.
const PAGE_MAX: u32 = 10_000;

pub(super) async fn list(
    services: &Services,
    request: Request<v1::ListTopicsRequest>,
) -> Result<v1::ListTopicsResponse, Error> {
    let principal = principal_of(&request)?;
    let request = request.into_inner();
    let handle = services.handle();
    handle.check_up()?;
    if request.limit > PAGE_MAX {
        return Err(Error::new(ErrorCode::InvalidArgument)
            .field("limit")
            .value(request.limit)
            .limit(PAGE_MAX));
    }
    let page = TopicPage {
        prefix: request.prefix,
        after: request.after,
        limit: match request.limit {
            0 => PAGE,
            limit => limit,
        },
    };
    let namespace = handle.namespace(&request.namespace)?.namespace.id;
    let command = Command::ListTopics { namespace, page };
    match handle
        .command(Principal::clone(&principal), command)
        .await?
    {
        Outcome::Topics { topics, more } => {
            let topics = topics.into_iter().map(|topic| v1::TopicSeen {
                name: topic.name,
                last: topic.last.0,
            });
            Ok(v1::ListTopicsResponse {
                topics: topics.collect(),
                more,
            })
        }
        Outcome::Namespace(_) | Outcome::Role(_) | Outcome::Deleted => {
            Err(Error::new(ErrorCode::Internal))
        }
    }
}

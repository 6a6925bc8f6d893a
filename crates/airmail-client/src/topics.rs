//! Listing the topics that hold messages, a page at a time.

use crate::context::ClientContext;
use crate::nodes::Node;
use airmail_model::{Error, Sequence};
use airmail_proto::v1;
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of topics that are requested at once.
const PAGE: u32 = 1_000;

/// A topic that holds messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Name of the topic.
    pub name: String,
    /// Number of its last message.
    pub last: Sequence,
}

/// A listing of topics that hold messages, in byte order of name.
///
/// ```no_run
/// # async fn example(client: airmail_client::Client) -> Result<(), airmail_model::Error> {
/// let mut topics = client.topics().prefix("orders.");
/// while let Some(topic) = topics.next().await? {
///     println!("{}", topic.name);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Topics {
    shared: Arc<ClientContext>,
    namespace: Arc<str>,
    prefix: String,
    after: String,
    page: VecDeque<Topic>,
    more: bool,
}

impl Topics {
    pub(crate) fn new(shared: Arc<ClientContext>) -> Topics {
        Topics {
            namespace: Arc::clone(&shared.namespace),
            shared,
            prefix: String::new(),
            after: String::new(),
            page: VecDeque::new(),
            more: true,
        }
    }

    /// Lists topics of another namespace than the client's.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Topics {
        self.namespace = namespace.into();
        self
    }

    /// Lists only names that begin with this prefix.
    #[must_use]
    pub fn prefix(mut self, prefix: &str) -> Topics {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Lists only names after this one.
    #[must_use]
    pub fn after(mut self, name: &str) -> Topics {
        name.clone_into(&mut self.after);
        self
    }

    /// Waits for the next topic; `None` at the end.
    ///
    /// # Errors
    /// `NAMESPACE_NOT_FOUND`, `DISCONNECTED`, and what else the node says.
    pub async fn next(&mut self) -> Result<Option<Topic>, Error> {
        while self.page.is_empty() && self.more {
            let request = v1::ListTopicsRequest {
                namespace: self.namespace.to_string(),
                prefix: self.prefix.clone(),
                after: self.after.clone(),
                limit: PAGE,
            };
            let page = self.shared.call(true, Node::list_topics, request).await?;
            // Nothing says where the page after an empty one begins.
            self.more = page.more && !page.topics.is_empty();
            if let Some(last) = page.topics.last() {
                last.name.clone_into(&mut self.after);
            }
            self.page.extend(page.topics.into_iter().map(|topic| Topic {
                name: topic.name,
                last: Sequence(topic.last),
            }));
        }
        Ok(self.page.pop_front())
    }
}

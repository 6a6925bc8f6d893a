//! The API's calls, each as a method of [`Node`] that takes a request and gives a boxed answer. The two
//! streams of batches, Publish and Subscribe, are opened otherwise (`nodes.rs`).
//!
//! Boxed, because the code of a future is compiled by whoever waits for it: without the box, every
//! program that uses the SDK would compile each call's encoding and transport again.

use crate::nodes::Node;
use airmail_proto::v1;
use std::future::Future;
use std::pin::Pin;
use tonic::{Response, Status, Streaming};

/// The answer to a call, to be waited for.
pub(crate) type Answer<'a, A> =
    Pin<Box<dyn Future<Output = Result<Response<A>, Status>> + Send + 'a>>;

macro_rules! calls {
    ($($service:ident { $($call:ident($request:ident) -> $answer:ty;)+ })+) => {
        impl Node {
            $($(
                pub(crate) fn $call(self, request: v1::$request) -> Answer<'static, $answer> {
                    Box::pin(async move { self.$service().$call(request).await })
                }
            )+)+
        }
    };
}

calls! {
    airmail {
        history(HistoryRequest) -> Streaming<v1::HistoryResponse>;
        list_topics(ListTopicsRequest) -> v1::ListTopicsResponse;
    }

    admin {
        create_namespace(CreateNamespaceRequest) -> v1::Namespace;
        get_namespace(GetNamespaceRequest) -> v1::Namespace;
        list_namespaces(ListNamespacesRequest) -> v1::ListNamespacesResponse;
        update_namespace(UpdateNamespaceRequest) -> v1::Namespace;
        move_namespace(MoveNamespaceRequest) -> v1::Namespace;
        delete_namespace(DeleteNamespaceRequest) -> v1::DeleteNamespaceResponse;
        recreate_namespace(RecreateNamespaceRequest) -> v1::Namespace;
        accept_loss(AcceptLossRequest) -> v1::Namespace;
        create_role(CreateRoleRequest) -> v1::Role;
        get_role(GetRoleRequest) -> v1::Role;
        list_roles(ListRolesRequest) -> v1::ListRolesResponse;
        delete_role(DeleteRoleRequest) -> v1::DeleteRoleResponse;
        get_flow(GetFlowRequest) -> v1::Flow;
        get_clock(GetClockRequest) -> v1::Clock;
        accept_clock(AcceptClockRequest) -> v1::Clock;
        get_cluster(GetClusterRequest) -> v1::Cluster;
        drain(DrainRequest) -> v1::DrainResponse;
    }

    mailbox {
        ping(PingRequest) -> v1::PingResponse;
        create_account(CreateAccountRequest) -> v1::CreateAccountResponse;
        delete_account(DeleteAccountRequest) -> v1::DeleteAccountResponse;
        find_account(FindAccountRequest) -> v1::FindAccountResponse;
        list_accounts(ListAccountsRequest) -> v1::ListAccountsResponse;
        create_queue(CreateQueueRequest) -> v1::CreateQueueResponse;
        delete_queue(DeleteQueueRequest) -> v1::DeleteQueueResponse;
        find_queue(FindQueueRequest) -> v1::FindQueueResponse;
        list_queues(ListQueuesRequest) -> v1::ListQueuesResponse;
        find_queues(FindQueuesRequest) -> v1::FindQueuesResponse;
        purge_queue(PurgeQueueRequest) -> v1::PurgeQueueResponse;
        count_messages(CountMessagesRequest) -> v1::CountMessagesResponse;
        send(SendRequest) -> v1::SendResponse;
        receive(ReceiveRequest) -> Streaming<v1::ReceiveResponse>;
        acknowledge(AcknowledgeRequest) -> v1::SettleResponse;
        extend(ExtendRequest) -> v1::SettleResponse;
        release(ReleaseRequest) -> v1::SettleResponse;
        look_up_message(LookUpMessageRequest) -> v1::LookUpMessageResponse;
        find_message(FindMessageRequest) -> v1::FindMessageResponse;
    }
}

//! Requests over HTTP.

use std::{future::pending, io, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode,
    body::{Body, Incoming},
    header,
};
use serde_json::{Value, json};

use crate::{
    Fault,
    proxy::Shared,
    recorded::question,
    upstream::{taken, with_processed_errors, without_statuses},
};

const PAGE: &str =
    "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>";
/// Not UTF-8, and not the beginning of any JSON.
const NOISE: &[u8] = &[0xff, 0xfe, 0x00, b'{', 0x80];

type Answer = Response<Full<Bytes>>;

/// Answers a request. An error breaks the connection off.
pub(crate) async fn serve(shared: Arc<Shared>, request: Request<Incoming>) -> io::Result<Answer> {
    let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let asked = body.len() as u64;
    let answer = answer(&shared, body).await;
    let answered = answer.as_ref().map_or(0, |answer| answer.body().size_hint().lower());
    shared.count_bytes(asked + answered);
    answer
}

async fn answer(shared: &Arc<Shared>, body: Bytes) -> io::Result<Answer> {
    // What is no request is the node's to refuse.
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = request["method"].as_str().unwrap_or_default();
    let fault = shared.fault(method);
    if let Some(Fault::Delay(time)) = fault {
        tokio::time::sleep(time).await;
    }
    match fault {
        None | Some(Fault::Delay(_)) => pass(shared, &request, body).await.map(plain),
        Some(Fault::TooManyRequests { retry_after_seconds }) => {
            let mut answer = page(StatusCode::TOO_MANY_REQUESTS);
            if let Some(seconds) = retry_after_seconds {
                answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            Ok(answer)
        }
        Some(Fault::Status(status)) => {
            Ok(page(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)))
        }
        Some(Fault::Html) => Ok(page(StatusCode::OK)),
        Some(Fault::Garbage) => Ok(plain(Bytes::from_static(NOISE))),
        Some(Fault::Error { code, message, data }) => Ok(error(&request, code, message, data)),
        Some(Fault::Hang) => pending().await,
        Some(Fault::Reset) => Err(io::ErrorKind::ConnectionReset.into()),
        Some(Fault::LoseAnswer) => {
            pass(shared, &request, body).await?;
            Err(io::ErrorKind::ConnectionReset.into())
        }
        Some(Fault::Stale { slots, checks_min_context_slot }) => {
            stale(shared, &request, body, slots, checks_min_context_slot).await
        }
        Some(fault @ (Fault::DropSend | Fault::DuplicateSend | Fault::DelaySend(_) | Fault::ReorderSend)) => {
            send(shared, &request, body, fault).await
        }
        Some(Fault::NullStatuses) => change(shared, &request, body, without_statuses).await,
        Some(Fault::ForgottenStatuses) => {
            let history = request["params"][1]["searchTransactionHistory"] == true;
            let change_it = if history { |answer| answer } else { without_statuses };
            change(shared, &request, body, change_it).await
        }
        Some(Fault::ProcessedErrors) => change(shared, &request, body, with_processed_errors).await,
    }
}

/// The node's answer, which is kept for later.
async fn pass(shared: &Shared, request: &Value, body: Bytes) -> io::Result<Bytes> {
    let sends = request["method"] == "sendTransaction";
    let answer = shared.upstream.ask(body).await.map_err(io::Error::other)?;
    let held = if sends { shared.swap_held(None) } else { None };
    if let Some(held) = held {
        // It came before this one, and goes after it.
        shared.upstream.ask(held).await.map_err(io::Error::other)?;
    }
    if let Ok(answer) = serde_json::from_slice::<Value>(&answer) {
        shared.recorded().keep(question(request), &answer["result"]);
    }
    Ok(answer)
}

async fn change(
    shared: &Shared,
    request: &Value,
    body: Bytes,
    change: impl FnOnce(Value) -> Value,
) -> io::Result<Answer> {
    let answer = pass(shared, request, body).await?;
    Ok(plain(change(serde_json::from_slice(&answer)?).to_string()))
}

async fn stale(
    shared: &Shared,
    request: &Value,
    body: Bytes,
    slots: u64,
    checks_min_context_slot: bool,
) -> io::Result<Answer> {
    let now: Value = serde_json::from_slice(&pass(shared, request, body).await?)?;
    let older = shared.recorded().older(&question(request), &now["result"], slots);
    let Some((slot, result)) = older else { return Ok(plain(now.to_string())) };
    let params = request["params"].as_array();
    let wanted = params.and_then(|params| params.iter().find_map(|param| param["minContextSlot"].as_u64()));
    if checks_min_context_slot && wanted.is_some_and(|wanted| wanted > slot) {
        let message = "Minimum context slot has not been reached".to_owned();
        return Ok(error(request, -32016, message, json!({ "contextSlot": slot })));
    }
    Ok(plain(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string()))
}

async fn send(shared: &Arc<Shared>, request: &Value, body: Bytes, fault: Fault) -> io::Result<Answer> {
    let Some(taken) = taken(request) else { return pass(shared, request, body).await.map(plain) };
    match fault {
        Fault::DuplicateSend => {
            let answer = pass(shared, request, body.clone()).await?;
            shared.upstream.ask(body).await.map_err(io::Error::other)?;
            return Ok(plain(answer));
        }
        Fault::DelaySend(time) => {
            let later = shared.clone();
            shared.spawn(async move {
                tokio::time::sleep(time).await;
                // Nobody waits for what the node says any more.
                let _ = later.upstream.ask(body).await;
            });
        }
        Fault::ReorderSend => {
            // Of two that are held in a row, the first one is sent at last.
            if let Some(held) = shared.swap_held(Some(body)) {
                shared.upstream.ask(held).await.map_err(io::Error::other)?;
            }
        }
        _ => (),
    }
    Ok(plain(taken.to_string()))
}

fn error(request: &Value, code: i64, message: String, data: Value) -> Answer {
    let error = json!({ "code": code, "message": message, "data": data });
    plain(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }).to_string())
}

fn plain(body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    let json = header::HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, json);
    answer
}

fn page(status: StatusCode) -> Answer {
    let mut answer = Response::new(Full::from(PAGE));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/html"));
    answer
}

//! The Gemini API: `models/NAME:streamGenerateContent`.

use atlas_core::sort;
use serde_json::{Map, Value, json};

use super::message::{Call, Message, Piece, Request, Tool};
use super::settings::Settings;

/// Builds the request for a conversation.
pub(super) fn request(settings: &Settings, messages: &[Message], tools: &[Tool]) -> Request {
    let system = messages.iter().filter_map(|message| match message {
        Message::System { text } => Some(json!({"text": text})),
        _ => None,
    });
    let system: Vec<Value> = system.collect();
    let contents: Vec<Value> = messages.iter().filter_map(content).collect();
    let mut body = sort::collect_unsorted::<Map<_, _>, _>([("contents".to_owned(), Value::Array(contents))]);
    if !system.is_empty() {
        body.insert("systemInstruction".to_owned(), json!({"parts": system}));
    }
    if !tools.is_empty() {
        let function =
            |tool: &Tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
        let functions: Vec<Value> = tools.iter().map(function).collect();
        body.insert("tools".to_owned(), json!([{"functionDeclarations": functions}]));
    }
    Request {
        url: format!("{}/models/{}:streamGenerateContent?alt=sse", settings.url, settings.model),
        headers: vec![("content-type", "application/json".to_owned()), ("accept", "text/event-stream".to_owned())],
        secret: settings.key.clone().map(|key| ("x-goog-api-key", key, "")),
        body: Value::Object(body),
    }
}

fn content(message: &Message) -> Option<Value> {
    Some(match message {
        Message::System { .. } => return None,
        Message::User { text } => json!({"role": "user", "parts": [{"text": text}]}),
        Message::Assistant { text, calls } => {
            let arguments = |call: &Call| serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
            let call = |call: &Call| json!({"functionCall": {"name": call.name, "args": arguments(call)}});
            let text = (!text.is_empty()).then(|| json!({"text": text}));
            let parts: Vec<Value> = text.into_iter().chain(calls.iter().map(call)).collect();
            json!({"role": "model", "parts": parts})
        }
        Message::Tool { call, result } => {
            let response: Value = serde_json::from_str(result).unwrap_or_else(|_| json!(result));
            let response = json!({"name": call.name, "response": {"result": response}});
            json!({"role": "user", "parts": [{"functionResponse": response}]})
        }
    })
}

/// Parses an event. Calls arrive complete; `before` is the number of calls in earlier events.
pub(super) fn pieces(data: &str, before: usize) -> Result<Vec<Piece>, String> {
    let value: Value = serde_json::from_str(data).map_err(|error| error.to_string())?;
    if let Some(error) = value.get("error") {
        let text = error.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_owned);
        return Err(format!("the endpoint reports: {text}"));
    }
    if let Some(reason) = value.pointer("/promptFeedback/blockReason") {
        return Err(format!("the endpoint blocked the question: {reason}"));
    }
    let Some(candidates) = value.get("candidates").and_then(Value::as_array) else {
        // Events that only report token usage have no candidates.
        return if value.is_object() { Ok(Vec::new()) } else { Err("expected an object".to_owned()) };
    };
    let Some(candidate) = candidates.first() else { return Ok(Vec::new()) };
    let mut pieces = Vec::new();
    let mut index = before;
    for part in candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten() {
        if let Some(text) = part.get("text").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            pieces.push(Piece::Text(text.to_owned()));
        }
        if let Some(call) = part.get("functionCall") {
            let arguments = call.get("args").cloned().unwrap_or_else(|| json!({}));
            pieces.push(Piece::Call {
                index,
                id: Some(format!("call_{index}")),
                name: call.get("name").and_then(Value::as_str).map(str::to_owned),
                arguments: arguments.to_string(),
            });
            index += 1;
        }
    }
    if candidate.get("finishReason").is_some_and(|reason| !reason.is_null()) {
        pieces.push(Piece::Done);
    }
    Ok(pieces)
}

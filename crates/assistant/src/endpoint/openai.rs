//! The OpenAI API: `/v1/chat/completions`, streamed or as a single document.

use atlas_core::sort;
use serde_json::{Map, Value, json};

use super::message::{Call, Message, Piece, Request, Tool};
use super::settings::Settings;

/// Builds the request for a conversation.
pub(super) fn request(settings: &Settings, messages: &[Message], tools: &[Tool]) -> Request {
    let mut body = sort::collect_unsorted::<Map<_, _>, _>([
        ("model".to_owned(), json!(settings.model)),
        ("messages".to_owned(), messages.iter().map(message).collect()),
        ("stream".to_owned(), json!(true)),
    ]);
    if !tools.is_empty() {
        let function = |tool: &Tool| {
            let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
            json!({"type": "function", "function": function})
        };
        body.insert("tools".to_owned(), tools.iter().map(function).collect());
    }
    Request {
        url: format!("{}/chat/completions", settings.url),
        headers: vec![("content-type", "application/json".to_owned()), ("accept", "text/event-stream".to_owned())],
        secret: settings.key.clone().map(|key| ("authorization", key, "Bearer ")),
        body: Value::Object(body),
    }
}

fn message(message: &Message) -> Value {
    match message {
        Message::System { text } => json!({"role": "system", "content": text}),
        Message::User { text } => json!({"role": "user", "content": text}),
        Message::Assistant { text, calls } if calls.is_empty() => json!({"role": "assistant", "content": text}),
        Message::Assistant { text, calls } => {
            let call = |call: &Call| {
                let function = json!({"name": call.name, "arguments": call.arguments});
                json!({"id": call.id, "type": "function", "function": function})
            };
            let calls: Vec<Value> = calls.iter().map(call).collect();
            json!({"role": "assistant", "content": text, "tool_calls": calls})
        }
        Message::Tool { call, result } => json!({"role": "tool", "tool_call_id": call.id, "content": result}),
    }
}

/// Parses an event or a whole response.
pub(super) fn pieces(data: &str) -> Result<Vec<Piece>, String> {
    if data.trim() == "[DONE]" {
        return Ok(vec![Piece::Done]);
    }
    let value: Value = serde_json::from_str(data).map_err(|error| error.to_string())?;
    if let Some(error) = value.get("error").filter(|error| !error.is_null()) {
        let text = error.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_owned);
        return Err(format!("the endpoint reports: {text}"));
    }
    let Some(choices) = value.get("choices").and_then(Value::as_array) else {
        return Err("there is no `choices`".to_owned());
    };
    let Some(choice) = choices.first() else { return Ok(Vec::new()) };
    let mut pieces = Vec::new();
    let whole = choice.get("message").is_some();
    if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
        if let Some(text) = delta.get("content").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            pieces.push(Piece::Text(text.to_owned()));
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array);
        for (place, call) in calls.into_iter().flatten().enumerate() {
            let text = |node: Option<&Value>| node.and_then(Value::as_str).map(str::to_owned);
            let function = call.get("function");
            let index = call.get("index").and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
            pieces.push(Piece::Call {
                index: index.unwrap_or(place),
                id: text(call.get("id")),
                name: text(function.and_then(|function| function.get("name"))),
                arguments: text(function.and_then(|function| function.get("arguments"))).unwrap_or_default(),
            });
        }
    }
    let finished = choice.get("finish_reason").is_some_and(|reason| !reason.is_null());
    if finished || whole {
        pieces.push(Piece::Done);
    }
    Ok(pieces)
}

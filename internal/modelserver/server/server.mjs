// Serves one GGUF model by OpenAI's Chat Completions, with llama.cpp in this process (node-llama-cpp).
//
//   node server.mjs --model FILE [--name NAME] [--host 127.0.0.1] [--port 8081] [--context 8192] [--parallel 2] [--threads N]
//
// Structured output (response_format json_schema) is enforced by a grammar. Tokens are the model's own: usage is what was
// evaluated and sampled. /apply-template, /tokenize and /detokenize have the shape of llama.cpp's own server; /running lists
// the completions that are being generated. It prints its address as JSON when it is ready, and then one line for each
// completion that is over, without any text of it.
import {randomUUID} from "node:crypto";
import http from "node:http";
import path from "node:path";
import {parseArgs} from "node:util";
import {Template} from "@huggingface/jinja";
import {getLlama, LlamaCompletion} from "node-llama-cpp";

const maxBody = 4 << 20; // bytes

const {values: flags} = parseArgs({options: {
    model: {type: "string"},
    name: {type: "string"}, // as /v1/models tells it
    host: {type: "string", default: "127.0.0.1"},
    port: {type: "string", default: "8081"}, // 0: any free one
    context: {type: "string", default: "8192"}, // tokens of a prompt and its completion together
    parallel: {type: "string", default: "2"}, // completions at a time; others wait
    threads: {type: "string", default: "0"}, // 0: as llama.cpp likes
    "until-stdin-ends": {type: "boolean", default: false} // for whoever starts this and must not leave it behind
}});
if (flags.model == null) {
    console.error("server.mjs: --model FILE is missing");
    process.exit(2);
}
const name = flags.name ?? path.basename(flags.model, ".gguf");

// Only the prebuilt program of the npm package: nothing is downloaded and nothing is compiled.
const llama = await getLlama({
    gpu: false,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    ...(flags.threads === "0" ? {} : {maxThreads: Number(flags.threads)})
});
const model = await llama.loadModel({modelPath: path.resolve(flags.model)});
const context = await model.createContext({
    contextSize: Number(flags.context),
    sequences: Number(flags.parallel),
    ...(flags.threads === "0" ? {} : {threads: Number(flags.threads)})
});
const {chat_template: chatTemplate, ggml: {tokens: vocabulary}} = model.fileInfo.metadata.tokenizer;
if (chatTemplate == null) {
    console.error("server.mjs: the model has no chat template; one that is made for chat is needed");
    process.exit(2);
}
const template = new Template(chatTemplate);

/** A request that cannot be served as it is. */
class BadRequest extends Error {
    constructor(message, code = "invalid_request", status = 400) {
        super(message);
        this.code = code;
        this.status = status;
    }
}

/** Hands out the context's sequences, first come first served. One that was used keeps its state, for prompts that begin alike. */
class Sequences {
    #free;
    #waiting = [];

    constructor(sequences) {
        this.#free = sequences;
    }

    async take(signal) {
        signal.throwIfAborted();
        if (this.#free.length > 0)
            return this.#free.shift();
        return await new Promise((resolve, reject) => {
            const waiter = {resolve};
            this.#waiting.push(waiter);
            signal.addEventListener("abort", () => {
                const place = this.#waiting.indexOf(waiter);
                if (place >= 0)
                    this.#waiting.splice(place, 1);
                reject(signal.reason); // without effect once there was a sequence
            }, {once: true});
        });
    }

    give(sequence) {
        const waiter = this.#waiting.shift();
        if (waiter == null)
            this.#free.push(sequence);
        else
            waiter.resolve(sequence);
    }
}

const sequences = new Sequences(Array.from({length: context.totalSequences}, () => context.getSequence()));

// What runs now: the texts that came so far, by the completion's id.
const running = new Map();

/** The messages in the model's chat template, up to where the answer begins; without a mark that tokenizing adds by itself. */
function applyTemplate(messages) {
    if (!Array.isArray(messages) || messages.length === 0)
        throw new BadRequest("messages: a list with at least one message is needed");
    for (const [i, message] of messages.entries())
        if (!["system", "user", "assistant"].includes(message?.role) || typeof message.content !== "string")
            throw new BadRequest(`messages[${i}]: a role and a text are needed; parts and tools are not supported`);
    let text;
    try {
        text = template.render({
            messages,
            add_generation_prompt: true,
            bos_token: model.tokens.bosString ?? "",
            eos_token: model.tokens.eosString ?? ""
        });
    } catch (error) {
        throw new BadRequest(`the model's chat template refuses the messages: ${error.message}`);
    }
    const bos = model.tokens.bosString;
    return model.tokens.shouldPrependBosToken && bos && text.startsWith(bos) ? text.slice(bos.length) : text;
}

function tokenize(text, {special, begin}) {
    const tokens = model.tokenize(text, special);
    return begin && model.tokens.shouldPrependBosToken ? [model.tokens.bos, ...tokens] : tokens;
}

const finishReasons = {
    eogToken: "stop",
    stopGenerationTrigger: "stop", // the grammar's end
    customStopTrigger: "stop",
    maxTokens: "length"
};

/** Reads and checks what a completion depends on. What is not supported is refused rather than passed over. */
async function plan(body) {
    for (const field of ["tools", "functions", "logprobs", "logit_bias"])
        if (body[field] != null && body[field] !== false)
            throw new BadRequest(`${field}: not supported`);
    if (body.n != null && body.n !== 1)
        throw new BadRequest("n: only 1 is supported");
    const limit = body.max_completion_tokens ?? body.max_tokens;
    if (limit != null && !(Number.isSafeInteger(limit) && limit > 0))
        throw new BadRequest("max_tokens: a positive whole number is needed");
    const format = body.response_format ?? {type: "text"};
    let grammar;
    if (format.type === "json_schema") {
        try {
            grammar = await llama.createGrammarForJsonSchema(format.json_schema.schema);
        } catch (error) {
            throw new BadRequest(`response_format: ${error.message}`);
        }
    } else if (format.type !== "text")
        throw new BadRequest("response_format: the types are text and json_schema");
    const prompt = tokenize(applyTemplate(body.messages), {special: true, begin: false}); // the library adds the begin
    if (prompt.length + 2 > context.contextSize)
        throw new BadRequest(`the prompt has ${prompt.length} tokens and the context ${context.contextSize}`, "context_length_exceeded");
    return {prompt, options: {
        grammar,
        maxTokens: limit,
        disableContextShift: true, // a full context is the token limit
        contextShiftSize: 1,
        temperature: body.temperature ?? 1,
        topP: body.top_p ?? 1,
        seed: body.seed ?? undefined,
        repeatPenalty: false
    }};
}

/** Generates on a sequence; onText gets the text as it comes. An aborted signal ends it by an error, at the next token. */
async function generate(sequence, {prompt, options}, signal, onText) {
    const completion = new LlamaCompletion({contextSequence: sequence});
    const before = sequence.tokenMeter.getState();
    try {
        const {response, metadata} = await completion.generateCompletionWithMeta(prompt, {...options, signal, onTextChunk: onText});
        const used = sequence.tokenMeter.diff(before);
        // The sequence holds the prompt and all that was sampled but the last token, and the meter calls the step from which
        // the first one was sampled, the prompt's last, output.
        const promptTokens = sequence.nextTokenIndex - (used.usedOutputTokens - 1);
        return {
            text: response,
            finish: finishReasons[metadata.stopReason],
            usage: {
                prompt_tokens: promptTokens,
                completion_tokens: used.usedOutputTokens,
                total_tokens: promptTokens + used.usedOutputTokens,
                prompt_tokens_details: {cached_tokens: promptTokens - (used.usedInputTokens + 1)}
            }
        };
    } finally {
        completion.dispose({disposeSequence: false});
    }
}

async function chatCompletions(req, res, body) {
    const planned = await plan(body);
    const answer = {id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1000), model: name};
    const gone = new AbortController();
    res.on("close", () => {
        if (!res.writableFinished)
            gone.abort(new Error("the client is gone"));
    });
    let texts = 0;
    const chunk = (delta, finish = null) => {
        send({...answer, object: "chat.completion.chunk", choices: [{index: 0, delta, finish_reason: finish}]});
    };
    const send = (event) => res.write(`data: ${JSON.stringify(event)}\n\n`);
    const log = (line) => console.log(JSON.stringify({request: req.headers["x-client-request-id"], ...line}));

    let sequence;
    try {
        sequence = await sequences.take(gone.signal);
        running.set(answer.id, texts);
        if (body.stream) {
            res.writeHead(200, {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"});
            chunk({role: "assistant", content: ""});
        }
        const {text, finish, usage} = await generate(sequence, planned, gone.signal, (text) => {
            running.set(answer.id, ++texts);
            if (body.stream)
                chunk({content: text});
        });
        log({finish, texts, ...usage});
        if (body.stream) {
            chunk({}, finish);
            if (body.stream_options?.include_usage)
                send({...answer, object: "chat.completion.chunk", choices: [], usage});
            res.end("data: [DONE]\n\n");
            return;
        }
        reply(res, 200, {...answer, object: "chat.completion", usage,
            choices: [{index: 0, message: {role: "assistant", content: text}, finish_reason: finish}]});
    } catch (error) {
        if (gone.signal.aborted)
            log({finish: "abandoned", texts});
        else
            throw error;
    } finally {
        running.delete(answer.id);
        if (sequence != null)
            sequences.give(sequence);
    }
}

const routes = {
    "GET /health": (_req, res) => reply(res, 200, {status: "ok"}),
    "GET /v1/models": (_req, res) => reply(res, 200, {object: "list", data: [
        {id: name, object: "model", created: 0, owned_by: "local", meta: {n_ctx_train: model.trainContextSize, n_ctx: context.contextSize}}
    ]}),
    "GET /running": (_req, res) => reply(res, 200, Array.from(running, ([id, texts]) => ({id, texts}))),
    "POST /v1/chat/completions": chatCompletions,
    "POST /apply-template": (_req, res, body) => reply(res, 200, {prompt: applyTemplate(body.messages)}),
    "POST /tokenize": (_req, res, body) => {
        if (typeof body.content !== "string")
            throw new BadRequest("content: a text is needed");
        reply(res, 200, {tokens: tokenize(body.content, {special: body.parse_special ?? true, begin: body.add_special ?? false})});
    },
    "POST /detokenize": (_req, res, body) => {
        if (!Array.isArray(body.tokens) || !body.tokens.every((token) => Number.isSafeInteger(token) && token >= 0 && token < vocabulary.length))
            throw new BadRequest("tokens: a list of the model's tokens is needed");
        reply(res, 200, {content: model.detokenize(body.tokens, true)});
    }
};

function reply(res, status, body) {
    res.writeHead(status, {"Content-Type": "application/json"});
    res.end(JSON.stringify(body));
}

async function read(req) {
    const parts = [];
    let size = 0;
    for await (const part of req) {
        size += part.length;
        if (size <= maxBody)
            parts.push(part);
    }
    if (size > maxBody) // said at the end, since a connection that is closed before may lose the answer
        throw new BadRequest(`the body has more than ${maxBody} bytes`, "too_large", 413);
    try {
        const body = JSON.parse(Buffer.concat(parts).toString("utf8"));
        if (typeof body === "object" && body != null && !Array.isArray(body))
            return body;
    } catch { /* told below */ }
    throw new BadRequest("the body is not a JSON object");
}

const server = http.createServer(async (req, res) => {
    try {
        const route = routes[`${req.method} ${req.url.split("?", 1)[0]}`];
        if (route == null)
            throw new BadRequest("there is nothing here", "not_found", 404);
        await route(req, res, req.method === "POST" ? await read(req) : undefined);
    } catch (error) {
        if (!(error instanceof BadRequest))
            console.error(error);
        const status = error instanceof BadRequest ? error.status : 500;
        const told = {error: {
            message: status === 500 ? "the server failed" : error.message,
            type: status === 500 ? "server_error" : "invalid_request_error",
            code: error instanceof BadRequest ? error.code : null
        }};
        if (res.headersSent)
            res.end(`data: ${JSON.stringify(told)}\n\n`);
        else
            reply(res, status, told);
    }
});

server.listen(Number(flags.port), flags.host, () => {
    const {address, port} = server.address();
    console.log(JSON.stringify({listening: `http://${address.includes(":") ? `[${address}]` : address}:${port}`, model: name}));
});

function stop() {
    process.exit(0); // what runs is cut off
}
process.on("SIGTERM", stop);
process.on("SIGINT", stop);
if (flags["until-stdin-ends"])
    process.stdin.on("end", stop).resume();

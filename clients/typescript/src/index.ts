export * from "./client.js";
export { DocketError, NoAnswerError, RequestError } from "./errors.js";
export * from "./generated/documents.js";
export type { Headers } from "./http.js";
export { Intent, type CreateJobResult, type IntentOptions, type JobRequest } from "./intent.js";
export type { RetryOptions } from "./retry.js";
export { defaultStorage, memoryStorage, webStorage, type IntentStorage, type WebStorage } from "./storage.js";
export type { Document, DocumentTypeDecoration } from "./typed.js";
export { Watch, type WatchOptions } from "./watch.js";

// The exports of `webhooks/` that other modules may import.
export { type DispatcherDeps, dispatchWebhooks } from './jobs.ts'
export type { OperatorEvent } from './operator-event.ts'
export { addWebhookRoutes, type WebhookRoutesDeps } from './routes.ts'
export { createSend } from './send-message.ts'
export { emitOperatorEvent, emitOperatorEvents } from './store-events.ts'
export { createWebhookOutbox } from './store-outbox.ts'
export { createWebhookStore } from './store.ts'
export { createTargetCheck } from './webhook-target.ts'

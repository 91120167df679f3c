// What starts an invocation (specification, section 3.3).

/** What made a function run. */
export type TriggerKind = 'http' | 'database' | 'schedule' | 'webhook'

// The kinds of triggers (specification, section 3.3).

/** The kind of trigger that started an invocation. */
export type TriggerKind = 'http' | 'database' | 'schedule' | 'webhook'

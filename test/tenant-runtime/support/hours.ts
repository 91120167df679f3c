// The hour that tests of hours count from.
export const hour0 = Date.UTC(2026, 10, 22, 3)

// The hour from which tests of hours count.
export const hour0 = Date.UTC(2026, 10, 22, 3)

// Tests of the check that doc comments are whole sentences.
import { test } from 'tap'
import { commentViolations } from '#scripts/comments/comment-violations.ts'

test('the check accepts whole sentences', async (t) => {
  const comments = [
    '/** Returns the lease, e.g. of a tenant. Undefined without one. */',
    '/** `sizeBytes` includes the header. */',
    '/** When the lease expires, the gateway requests another. */',
    '/** Milliseconds. */',
    '/** @returns the row */',
    '/**\n * Lists the steps:\n *\n * - one\n *   and more\n * - two\n *\n * @param x a number\n */',
    '/** Reads {@link Lease} and `a.b`. */',
    '/** Whether the key is live. */',
  ]
  for (const comment of comments) t.same(commentViolations(comment), [], comment)
})

test('the check finds fragments', async (t) => {
  const comments = [
    '/** And at most. */',
    '/** The same of what was changed. */',
    '/** Of the plan, and of all gateways together. */',
    '/** What was asked. */',
    '/** In the order of their IDs. */',
    '/** At most 10, and at least 1. */',
    '/** Whose every failure is an error. */',
  ]
  for (const comment of comments) t.match(commentViolations(comment), [/begins a fragment/], comment)
})

test('the check finds a small letter at the beginning and a missing full stop', async (t) => {
  t.match(commentViolations('/** the row. */'), [/capital letter/])
  t.match(commentViolations('/** The row */'), [/full stop/])
  t.match(commentViolations('/** The name of `a.` */'), [/full stop/])
  t.match(commentViolations('/** The row\n * @returns it. */'), [/full stop/])
})

// Takes a function's secrets out of texts that others read: errors, records, logs (specification, section 2.4).

import { secretForms } from '../triggers/webhook-signature.ts'
import type { FunctionRecord } from '../function.ts'

const shortestSecret = 4

/** Every value of the environment is taken for a secret, but for very short ones, which would garble any text. */
export function redact(text: string, environment: Readonly<Record<string, string>>): string {
  const secrets = Object.values(environment).filter((value) => value.length >= shortestSecret)
  // The longest first, so that no part of one is left by another.
  return secrets.sort((a, b) => b.length - a.length).reduce((shown, secret) => shown.replaceAll(secret, '[redacted]'), text)
}

/** The texts that must not be shown of a function: its variables, and the secret of its webhook. */
export function secretsOf({ config, trigger }: Pick<FunctionRecord, 'config' | 'trigger'>): Record<string, string> {
  const webhook = typeof trigger === 'object' && 'Webhook' in trigger ? secretForms(trigger.Webhook.secret) : []
  return { ...config.environment, ...Object.fromEntries(webhook.map((text, n) => [`webhook secret ${n}`, text])) }
}

// Takes a function's secrets out of texts that others read: errors, records, logs (specification, section 2.4).

const shortestSecret = 4

/** Every value of the environment is taken for a secret, but for very short ones, which would garble any text. */
export function redact(text: string, environment: Readonly<Record<string, string>>): string {
  const secrets = Object.values(environment).filter((value) => value.length >= shortestSecret)
  // The longest first, so that no part of one is left by another.
  return secrets.sort((a, b) => b.length - a.length).reduce((shown, secret) => shown.replaceAll(secret, '[redacted]'), text)
}

// The secrets of a new tenant.
import { newApiKey, newSecret } from '../keys/index.ts'
import type { SecretKind } from './tenant.ts'

/** Creates random passwords, secrets and API keys for a new tenant, one of each kind, as plain text. */
export function newSecrets(): Record<SecretKind, string> {
  return {
    runtime_password: newSecret(),
    ddl_password: newSecret(),
    admin_password: newSecret(),
    jwt_secret: newSecret(),
    signing_secret: newSecret(),
    publishable_key: newApiKey('publishable'),
    secret_key: newApiKey('secret'),
  }
}

// Writes the secrets of tenants to the control database, sealed.
import { randomUUID } from 'node:crypto'
import { ControlError } from '../platform/errors.ts'
import type { Transaction } from '../platform/database.ts'
import type { Seal } from '../platform/seal.ts'
import type { SecretKind } from './tenant.ts'

/** Kinds of secrets that a rotation of keys can replace. */
export const rotatedKinds = ['publishable_key', 'secret_key', 'jwt_secret', 'signing_secret'] as const
export type RotatedKind = (typeof rotatedKinds)[number]

/** The number of valid secrets of one kind. The runtime compares a token with each of them. */
const maxLiveSecrets = 5

/** Returns rows of secrets. */
export function sealedSecrets(seal: Seal, tenantId: string, secrets: Partial<Record<SecretKind, string>>) {
  return Object.entries(secrets).map(([kind, text]) => ({
    id: randomUUID(),
    tenantId,
    kind,
    sealed: seal.seal(text, `${tenantId}:${kind}`),
  }))
}

/**
 * Stores new secrets. The old ones of these kinds are valid until `expireAt`, and no longer than before; without it,
 * until they are removed.
 * @throws ControlError TOO_MANY_SECRETS
 */
export async function replaceSecrets(
  transaction: Transaction,
  seal: Seal,
  tenantId: string,
  secrets: Partial<Record<SecretKind, string>>,
  { now, expireAt }: { now: Date; expireAt: Date | undefined },
): Promise<void> {
  const kinds = Object.keys(secrets)
  if (expireAt !== undefined)
    await transaction.tenantSecret.updateMany({
      where: { tenantId, kind: { in: kinds }, OR: [{ expiresAt: null }, { expiresAt: { gt: expireAt } }] },
      data: { expiresAt: expireAt },
    })
  await transaction.tenantSecret.deleteMany({ where: { tenantId, expiresAt: { lte: now } } })
  const counts = await transaction.tenantSecret.groupBy({
    by: ['kind'],
    where: { tenantId, kind: { in: kinds } },
    _count: { _all: true },
  })
  const full = counts.find(({ _count }) => _count._all >= maxLiveSecrets)
  if (full !== undefined)
    throw new ControlError(
      'TOO_MANY_SECRETS',
      `The tenant has ${maxLiveSecrets} valid secrets of the kind "${full.kind}". Allowed: ${maxLiveSecrets}. ` +
        'Wait until one expires, or rotate with a shorter overlap.',
    )
  const { _max } = await transaction.tenantSecret.aggregate({
    where: { tenantId, kind: { in: kinds } },
    _max: { createdAt: true },
  })
  // The newest secret is the one in use, also if an earlier one was created by a clock that was ahead.
  const createdAt = new Date(Math.max(now.getTime(), (_max.createdAt?.getTime() ?? 0) + 1))
  const data = sealedSecrets(seal, tenantId, secrets).map((row) => ({ ...row, createdAt }))
  await transaction.tenantSecret.createMany({ data })
}

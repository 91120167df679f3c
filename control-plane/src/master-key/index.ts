// The public interface of `master-key/`.
export { reseal } from './jobs-reseal.ts'
export { createSealedValues, rejectUnknownMasterKey } from './store-sealed-values.ts'

/** The wire shape of a certificate. */
import { joi, type Value } from '@portico/sdk';
import { uploadBounds } from './pem.ts';

const name = () => joi.string().max(100).description('For people; the first name of the certificate unless it is given');
const certificate = () => joi.string().max(uploadBounds.certificate).description('PEM: the host\'s own certificate first, then each issuer');
const key = () => joi.secret().max(uploadBounds.key).description('PEM of the private key, not encrypted. Sealed at rest, never read back');

export const certificateCreate = joi.object({
    source: joi.string().valid('upload').default('upload'),
    name: name(),
    certificate: certificate().required(),
    key: key().required()
});

/** What is only read may be sent back and is ignored, but `version`, which acts as If-Match. */
export const certificateUpdate = joi.object({
    name: name(),
    certificate: certificate().description('Replaces the certificate; only together with `key`'),
    key: key(),
    version: joi.number().integer().min(1),
    id: joi.any(), source: joi.any(), domains: joi.any(), issuer: joi.any(), serial: joi.any(), notBefore: joi.any(), notAfter: joi.any(), fingerprint256: joi.any(), autoRenew: joi.any(),
    usedBy: joi.any(), lastError: joi.any(), nextAttemptAt: joi.any(), createdAt: joi.any(), updatedAt: joi.any()
});

export const certificateParams = joi.object({ id: joi.number().integer().min(1).required() });

export const certificateDownload = joi.object({
    key: joi.boolean().description('Whether the key follows the chain. Without it: if the caller has `certificates:secrets` and is fresh')
});

export const certificateView = joi.object({
    id: joi.number().integer().required(),
    name: joi.string().required(),
    source: joi.string().valid('upload').required(),
    domains: joi.array().items(joi.string()).required().description('Every name that it is valid for'),
    issuer: joi.string().allow('').required(),
    serial: joi.string().required().description('Hexadecimal'),
    notBefore: joi.string().required(),
    notAfter: joi.string().required(),
    fingerprint256: joi.string().required().description('SHA-256, lower-case hexadecimal'),
    autoRenew: joi.boolean().required(),
    usedBy: joi.array().items(joi.number().integer()).required().description('Ids of the hosts that name it'),
    lastError: joi.any().valid(null).required() as never,
    nextAttemptAt: joi.string().allow(null).required(),
    version: joi.number().integer().required(),
    createdAt: joi.string().required(),
    updatedAt: joi.string().required()
});

export type CertificateCreate = Value<typeof certificateCreate>;
export type CertificateUpdate = Value<typeof certificateUpdate>;

/** A certificate as it is read. */
export interface CertificateView {
    readonly id: number;
    readonly name: string;
    readonly source: 'upload';
    readonly domains: readonly string[];
    readonly issuer: string;
    readonly serial: string;
    readonly notBefore: string;
    readonly notAfter: string;
    readonly fingerprint256: string;
    readonly autoRenew: boolean;
    readonly usedBy: readonly number[];
    readonly lastError: null;
    readonly nextAttemptAt: string | null;
    readonly version: number;
    readonly createdAt: string;
    readonly updatedAt: string;
}

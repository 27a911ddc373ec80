/** The wire shape of a certificate. */
import { joi, type Value } from '@portico/sdk';

import type { Problem } from './acme/problem.ts';
import { uploadBounds } from './input/pem.ts';

const name = () =>
    joi.string().max(100).description('For people; the first name of the certificate unless it is given');
const certificate = () =>
    joi
        .string()
        .max(uploadBounds.certificate)
        .description("PEM: the host's own certificate first, then each issuer");
const key = () =>
    joi
        .secret()
        .max(uploadBounds.key)
        .description('PEM of the private key, not encrypted. Sealed at rest, never read back');
const directory = () =>
    joi
        .string()
        .uri({ scheme: ['https'] })
        .max(2048);
const email = () =>
    joi
        .string()
        .email({ tlds: { allow: false } })
        .max(254);
const eab = () =>
    joi.object({
        keyId: joi
            .string()
            .pattern(/^[\x21-\x7a|~]+$/)
            .max(512)
            .required(),
        macKey: joi
            .secret()
            .pattern(/^[A-Za-z0-9_-]+={0,2}$/)
            .max(512)
            .required()
    });

/** Body of POST: an upload or an order. */
export const certificateCreate = joi.object({
    source: joi.string().valid('upload', 'acme').default('upload'),
    name: name(),
    certificate: certificate(),
    key: key(),
    domains: joi
        .array()
        .items(joi.string().max(255))
        .min(1)
        .description('For `acme`: the names to order a certificate for, wildcards among them'),
    dnsProviderId: joi
        .number()
        .integer()
        .min(1)
        .description('For `acme`: who writes the records; the default provider unless it is given'),
    acme: joi
        .object({
            directory: directory().description(
                "The CA; the setting `engine.acmeDirectory`, or else Let's Encrypt, unless it is given"
            ),
            email: email().description('The setting `engine.acmeEmail` unless it is given'),
            eab: eab().description('For CAs that bind ACME accounts to their own')
        })
        .description("For `acme`. To order means to agree to the CA's terms of service"),
    autoRenew: joi.boolean().description('For `acme`; true unless it is given')
});

/** What is only read may be sent back and is ignored, but `version`, which acts as If-Match. */
export const certificateUpdate = joi.object({
    name: name(),
    certificate: certificate().description(
        'Replaces the certificate; only together with `key`, and only of an upload'
    ),
    key: key(),
    autoRenew: joi.boolean().description('Only for `acme`'),
    dnsProviderId: joi.number().integer().min(1).allow(null),
    acme: joi
        .object({
            directory: directory(),
            email: email().allow(null),
            eab: joi
                .object({ keyId: joi.string().max(512).required(), macKey: joi.secret().max(512) })
                .allow(null)
                .description('Without `macKey`, as in a read, it stays as it is')
        })
        .allow(null),
    version: joi.number().integer().min(1),
    id: joi.any(),
    source: joi.any(),
    domains: joi.any(),
    issuer: joi.any(),
    serial: joi.any(),
    notBefore: joi.any(),
    notAfter: joi.any(),
    fingerprint256: joi.any(),
    usedBy: joi.any(),
    lastError: joi.any(),
    nextAttemptAt: joi.any(),
    owner: joi.any(),
    createdAt: joi.any(),
    updatedAt: joi.any()
});

/** Path parameters of one certificate. */
export const certificateParams = joi.object({
    id: joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).required()
});

/** Query of the download. */
export const certificateDownload = joi.object({
    key: joi
        .boolean()
        .description(
            'Whether the key follows the chain. Without it: if the caller has `certificates:secrets` and is fresh'
        )
});

const identifier = joi.object({
    type: joi.string().allow('').required(),
    value: joi.string().allow('').required()
});

/** The answer about one certificate. */
export const certificateView = joi.object({
    id: joi.number().integer().required().description("Those of the engine's own begin at 4503599627370496"),
    name: joi.string().required(),
    source: joi
        .string()
        .valid('upload', 'acme', 'engine')
        .required()
        .description('`engine`: what the proxy engine obtained by itself; only to be read'),
    domains: joi.array().items(joi.string()).required().description('Every name that it is valid for'),
    issuer: joi
        .string()
        .allow('', null)
        .required()
        .description('Null, as serial, times and fingerprint, until it is issued'),
    serial: joi.string().allow(null).required().description('Hexadecimal'),
    notBefore: joi.string().allow(null).required(),
    notAfter: joi.string().allow(null).required(),
    fingerprint256: joi.string().allow(null).required().description('SHA-256, lower-case hexadecimal'),
    dnsProviderId: joi.number().integer().allow(null).required(),
    acme: joi
        .object({
            directory: joi.string().required(),
            email: joi.string().allow(null).required(),
            eab: joi.object({ keyId: joi.string().required() }).allow(null).required()
        })
        .allow(null)
        .required(),
    autoRenew: joi.boolean().required(),
    usedBy: joi
        .array()
        .items(joi.number().integer())
        .required()
        .description('Ids of the hosts that name it, or that the engine obtained it for'),
    lastError: joi
        .object({
            type: joi
                .string()
                .allow('')
                .required()
                .description('A URN; those of the panel itself begin with `urn:portico:error:`'),
            title: joi.string().allow(''),
            detail: joi.string().allow('').required(),
            status: joi.number(),
            instance: joi.string().allow(''),
            identifier,
            subproblems: joi.array().items(joi.any()),
            at: joi.string().required().description('When it was met')
        })
        .allow(null)
        .required()
        .description(
            'The problem document of the CA that the last attempt met; null after one that went well'
        ),
    nextAttemptAt: joi
        .string()
        .allow(null)
        .required()
        .description('When it is renewed, or tried again, by itself'),
    owner: joi.string().allow(null).required().description('The plugin that made it; null for people'),
    version: joi.number().integer().required(),
    createdAt: joi.string().required(),
    updatedAt: joi.string().required()
});

/** An upload or an order. */
export type CertificateCreate = Value<typeof certificateCreate>;
/** A change of a certificate. */
export type CertificateUpdate = Value<typeof certificateUpdate>;

/** A certificate as it is read. */
export interface CertificateView {
    readonly id: number;
    readonly name: string;
    readonly source: 'upload' | 'acme' | 'engine';
    readonly domains: readonly string[];
    readonly issuer: string | null;
    readonly serial: string | null;
    readonly notBefore: string | null;
    readonly notAfter: string | null;
    readonly fingerprint256: string | null;
    readonly dnsProviderId: number | null;
    readonly acme: {
        readonly directory: string;
        readonly email: string | null;
        readonly eab: { readonly keyId: string } | null;
    } | null;
    readonly autoRenew: boolean;
    readonly usedBy: readonly number[];
    readonly lastError: (Problem & { readonly at: string }) | null;
    readonly nextAttemptAt: string | null;
    readonly owner: string | null;
    readonly version: number;
    readonly createdAt: string;
    readonly updatedAt: string;
}

/**
 * Clients that are known by a URL: the URL is the client's id, and the document there says who it is (draft-ietf-oauth-client-id-metadata-document).
 * The owner of the URL is the owner of the client, so nothing has to be registered.
 */
import { joi, type Value } from '@portico/sdk';

import { invalid } from '../../../platform/errors.ts';
import { type Outbound, OutboundFailure } from '../../../platform/outbound/client.ts';
import { faultsOf } from '../../../platform/validation.ts';
import { parseJson } from '../../../server/http/request/input/json.ts';
import { faultOfRedirect } from './redirect.ts';
import { OAuthRefusal } from './refusal.ts';

/** What a client says of itself. */
export interface ClientMetadata {
    /** Null when it does not say. */
    readonly name: string | null;
    readonly redirectUris: readonly string[];
}

/** The part of the outbound client that is needed; it checks addresses when it connects. */
export type DocumentSource = Pick<Outbound, 'request'>;

/** The draft recommends 5 KB; documents in use have keys and logos beside it. */
const maxBytes = 32 * 1024;
const timeoutMs = 5_000;
const mostRedirects = 20;

const short = joi.string().max(100);
/** The fields of RFC 7591, section 2, that matter here; all others are ignored, as it says. */
const fields = joi.object({
    client_name: joi.string().min(1).max(100),
    redirect_uris: joi.array().items(joi.string().max(2048)).min(1).max(mostRedirects).required(),
    token_endpoint_auth_method: short,
    grant_types: joi.array().items(short).max(20),
    response_types: joi.array().items(short).max(20)
});
const metadata = fields.unknown();

/** Whether a client's id is a URL. */
export function isClientUrl(id: string): boolean {
    return id.startsWith('https://');
}

/**
 * Reads what a client says of itself, in a document or at its registration.
 *
 * @throws OAuthRefusal `invalid_redirect_uri` or `invalid_client_metadata`
 */
export function readMetadata(value: unknown): ClientMetadata {
    const [wrong] = faultsOf(metadata, value);
    if (wrong !== undefined) {
        throw new OAuthRefusal(
            wrong.path.startsWith('redirect_uris') ? 'invalid_redirect_uri' : 'invalid_client_metadata',
            wrong.message
        );
    }
    const read = value as Value<typeof fields>;
    for (const uri of read.redirect_uris) {
        const fault = faultOfRedirect(uri);
        if (fault !== null) {
            throw new OAuthRefusal('invalid_redirect_uri', `The redirect URI ${uri} ${fault}`);
        }
    }
    const fault = faultOfFlow(read);
    if (fault !== null) {
        throw new OAuthRefusal('invalid_client_metadata', fault);
    }
    return { name: read.client_name?.trim() || null, redirectUris: read.redirect_uris };
}

function faultOfFlow({
    token_endpoint_auth_method: method = 'none',
    grant_types: grants,
    response_types: responses
}: Value<typeof fields>): string | null {
    if (method !== 'none') {
        return 'token_endpoint_auth_method must be none: clients have no secret here and prove themselves by PKCE';
    }
    if (grants?.includes('authorization_code') === false) {
        return 'grant_types must have authorization_code';
    }
    return responses?.includes('code') === false ? 'response_types must have code' : null;
}

/** Reads the document of a client. @throws VALIDATION_FAILED 40001 for the path `client_id` */
export async function readClientDocument(source: DocumentSource, id: string): Promise<ClientMetadata> {
    const refuse = (message: string): never => {
        throw invalid({ path: 'client_id', message });
    };
    const url = id.length <= 2048 ? URL.parse(id) : null;
    if (
        url?.href !== id ||
        url.pathname === '/' ||
        url.username !== '' ||
        url.password !== '' ||
        id.includes('#')
    ) {
        return refuse('client_id must be an https URL with a path, in its usual form');
    }
    let answer;
    try {
        answer = await source.request(id, { headers: { accept: 'application/json' }, maxBytes, timeoutMs });
    } catch (error) {
        if (error instanceof OutboundFailure) {
            return refuse(`The client's document cannot be read: ${error.message}`);
        }
        throw error;
    }
    if (answer.status !== 200) {
        return refuse(`The client's document cannot be read: the answer is ${answer.status}`);
    }
    let document: unknown;
    try {
        document = parseJson(answer.body, maxBytes);
    } catch {
        return refuse("The client's document is not JSON");
    }
    if ((document as { readonly client_id?: unknown } | null)?.client_id !== id) {
        return refuse("The client's document names another client_id");
    }
    try {
        return readMetadata(document);
    } catch (error) {
        if (error instanceof OAuthRefusal) {
            return refuse(`The client's document cannot be used: ${error.message}`);
        }
        throw error;
    }
}

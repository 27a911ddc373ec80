/** One order from beginning to end: proves every name by TXT records and fetches the chain. */
import { challengeValue } from '../../../platform/keys/acme.ts';
import type { AcmeClient } from './client.ts';
import { AcmeFailure, ownProblem, readProblem } from './problem.ts';
import { newCertificateKey, signingRequest } from './request.ts';

/** One authorization to be proven, as a writer of DNS records takes it. */
export interface DnsChallenge {
    /** The name without `*.`. */
    readonly domain: string;
    readonly token: string;
    /** What the TXT record says. */
    readonly value: string;
}

/** Writes the records, calls back for each that is there, and removes them in the end, whatever happens. */
export interface DnsWriter {
    solve(
        work: {
            readonly challenges: readonly DnsChallenge[];
            readonly key: { readonly pem: string };
            readonly signal: AbortSignal;
            log(text: string): void;
        },
        written: (challenge: DnsChallenge) => Promise<void>
    ): Promise<void>;
}

/** What an order works with. */
export interface Order {
    readonly client: AcmeClient;
    /** PEM of the account's key. */
    readonly accountKey: string;
    readonly domains: readonly string[];
    readonly writer: DnsWriter;
    readonly signal: AbortSignal;
    progress(fraction: number, text: string): void;
    log(text: string): void;
}

/** What an order yields. */
export interface Ordered {
    /** PEM: leaf and issuers. */
    readonly chain: string;
    /** PEM. */
    readonly key: string;
}

type Body = Readonly<Record<string, unknown>>;

interface Pending extends DnsChallenge {
    readonly authorization: string;
    readonly url: string;
}

/** Time to tell the CA which authorizations are no longer needed. */
const farewellMs = 3_000;

/** Obtains a certificate. @throws AcmeFailure, what the writer throws, or the signal's reason */
export async function obtain({
    client,
    accountKey,
    domains,
    writer,
    signal,
    progress,
    log
}: Order): Promise<Ordered> {
    const { body, location } = await client.post(await client.urlOf('newOrder'), {
        identifiers: domains.map((value) => ({ type: 'dns', value }))
    });
    const { authorizations, finalize } = body;
    if (
        location === null ||
        typeof finalize !== 'string' ||
        !Array.isArray(authorizations) ||
        !authorizations.every((url) => typeof url === 'string')
    ) {
        throw new AcmeFailure(ownProblem('malformed-order', 'The CA gave an order that cannot be read'));
    }
    progress(0.2, `Ordered ${domains.join(', ')}`);
    const pending: Pending[] = [];
    for (const url of authorizations) {
        const { body: authorization } = await client.post(url, null);
        if (authorization['status'] !== 'valid') {
            pending.push(challengeOf(authorization, url, accountKey));
        }
    }
    if (pending.length > 0) {
        try {
            await prove(pending);
        } catch (error) {
            await release(client, pending);
            throw error;
        }
    }
    progress(0.7, 'Every name is proven');
    const key = newCertificateKey();
    await client.until(location, ({ status }) => status !== 'pending');
    await client.post(finalize, { csr: signingRequest(domains, key).toString('base64url') });
    const done = await client.until(location, ({ status }) => status === 'valid' || status === 'invalid');
    if (done['status'] !== 'valid' || typeof done['certificate'] !== 'string') {
        throw new AcmeFailure(
            readProblem(done['error'], 'The CA did not issue the certificate and does not say why')
        );
    }
    const { text } = await client.post(done['certificate'], null);
    progress(0.8, 'The CA issued the certificate');
    return { chain: text, key };

    async function prove(challenges: readonly Pending[]): Promise<void> {
        const pairs = new Map<DnsChallenge, Pending>(challenges.map((each) => [each, each]));
        await writer.solve({ challenges, key: { pem: accountKey }, signal, log }, async (challenge) => {
            const { url, authorization, domain } = pairs.get(challenge) ??
                challenges.find(({ token }) => token === challenge.token) ?? {
                    url: '',
                    authorization: '',
                    domain: ''
                };
            log(`Asking the CA to look at the TXT record of ${domain}`);
            await client.post(url, {});
            const result = await client.until(
                authorization,
                ({ status }) => status !== 'pending' && status !== 'processing'
            );
            if (result['status'] !== 'valid') {
                throw new AcmeFailure(refusalOf(result, domain));
            }
        });
    }
}

function challengeOf(authorization: Body, url: string, accountKey: string): Pending {
    const { identifier, challenges, status } = authorization;
    const domain = (identifier as { readonly value?: unknown } | undefined)?.value;
    const challenge = (Array.isArray(challenges) ? (challenges as Body[]) : []).find(
        ({ type }) => type === 'dns-01'
    );
    if (typeof domain !== 'string') {
        throw new AcmeFailure(
            ownProblem('malformed-order', 'The CA gave an authorization that cannot be read')
        );
    }
    if (status !== 'pending') {
        throw new AcmeFailure(refusalOf(authorization, domain));
    }
    const { token, url: challengeUrl } = challenge ?? {};
    if (
        typeof token !== 'string' ||
        typeof challengeUrl !== 'string' ||
        !/^[A-Za-z0-9_-]{1,256}$/.test(token)
    ) {
        throw new AcmeFailure(
            ownProblem('no-dns-challenge', `The CA does not let ${domain} be proven by DNS`)
        );
    }
    return {
        domain: domain.toLowerCase(),
        token,
        value: challengeValue(token, accountKey),
        authorization: url,
        url: challengeUrl
    };
}

/** The problem with which the CA refused a name. */
function refusalOf({ challenges, identifier, status }: Body, domain: string) {
    const error = (Array.isArray(challenges) ? (challenges as Body[]) : [])
        .map((challenge) => challenge['error'])
        .find((each) => each !== undefined && each !== null);
    const problem = readProblem(error, `The CA does not believe that ${domain} is ours (${String(status)})`);
    return {
        ...problem,
        ...(problem.identifier === undefined
            ? {
                  identifier: {
                      type: 'dns',
                      value: String((identifier as { readonly value?: unknown } | undefined)?.value ?? domain)
                  }
              }
            : {})
    };
}

/** Deactivates authorizations that are left open, because CAs count them (RFC 8555, section 7.5.2). */
async function release(client: AcmeClient, pending: readonly Pending[]): Promise<void> {
    const signal = AbortSignal.timeout(farewellMs);
    await Promise.allSettled(
        pending.map(({ authorization }) => client.post(authorization, { status: 'deactivated' }, signal))
    );
}

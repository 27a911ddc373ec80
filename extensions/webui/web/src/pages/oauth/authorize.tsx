/** The question whether a client may act for the user: who asks, for which address, with which permissions. RFC 6749, section 4.1.1. */
import { useEffect, useState } from 'preact/hooks';
import { useSearchParams } from 'wouter-preact';

import { call } from '../../api/client.ts';
import { ApiFailure } from '../../api/failure.ts';
import { Button } from '../../kit/button.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';

interface Preview {
    readonly client: { readonly id: string; readonly name: string };
    readonly redirectUri: string;
    readonly resource: { readonly path: string; readonly title: string };
    readonly permissions: readonly Permission[];
}
interface Permission {
    readonly name: string;
    readonly title: string;
    readonly dangerous: boolean;
    /** The user has it, and so can give it. */
    readonly allowed: boolean;
}

/** The parameters that a client may send; others are left out. */
const known = [
    'response_type',
    'client_id',
    'redirect_uri',
    'scope',
    'state',
    'code_challenge',
    'code_challenge_method',
    'resource'
];
const base = '/api/auth/oauth/authorize';

/** Shows the screen where the user lets an OAuth client in, or refuses. */
export default function Authorize() {
    const [search] = useSearchParams();
    const request = Object.fromEntries([...search].filter(([name]) => known.includes(name)));
    const key = JSON.stringify(request);
    const [preview, setPreview] = useState<Preview | null>(null);
    const [failure, setFailure] = useState<ApiFailure | null>(null);
    useEffect(() => {
        call<Preview>('POST', `${base}/validate`, { body: JSON.parse(key) as object }).then(
            ({ data }) => setPreview(data),
            (error: unknown) => setFailure(error instanceof ApiFailure ? error : null)
        );
    }, [key]);
    return (
        <Page title={t('May this client act for you?')}>
            {preview === null ? (
                <Waiting error={failure} />
            ) : (
                <Question request={request} preview={preview} />
            )}
            <BackToClient failure={failure} />
        </Page>
    );
}

function Question({
    request,
    preview: { client, redirectUri, resource, permissions }
}: {
    readonly request: Readonly<Record<string, string>>;
    readonly preview: Preview;
}) {
    const [given, setGiven] = useState<ReadonlySet<string>>(
        new Set(permissions.filter(({ allowed, dangerous }) => allowed && !dangerous).map(({ name }) => name))
    );
    const [failure, setFailure] = useState<ApiFailure | null>(null);
    const answer = async (more: Readonly<Record<string, unknown>>): Promise<void> => {
        try {
            const { data } = await call<{ redirect: string }>('POST', base, {
                body: { ...request, ...more }
            });
            location.assign(data.redirect);
        } catch (error) {
            setFailure(error instanceof ApiFailure ? error : null);
        }
    };
    return (
        <section class="card">
            <dl class="facts">
                <div>
                    <dt>{t('Client')}</dt>
                    <dd>
                        {client.name} <small>{client.id}</small>
                    </dd>
                </div>
                <div>
                    <dt>{t('It asks for')}</dt>
                    <dd>
                        {resource.title} <small>{resource.path}</small>
                    </dd>
                </div>
                <div>
                    <dt>{t('Then your browser goes to')}</dt>
                    <dd>{redirectUri}</dd>
                </div>
            </dl>
            <fieldset>
                <legend>{t('What it may do')}</legend>
                {permissions.map((each) => (
                    <Choice key={each.name} permission={each} given={given} onChange={setGiven} />
                ))}
            </fieldset>
            {failure === null ? null : <Waiting error={failure} />}
            <BackToClient failure={failure} />
            <footer class="row">
                <Button onPress={() => answer({ deny: true })}>{t('Refuse')}</Button>
                <Button
                    look="primary"
                    isDisabled={given.size === 0}
                    onPress={() => answer({ scope: [...given].join(' ') })}
                >
                    {t('Allow')}
                </Button>
            </footer>
        </section>
    );
}

function Choice({
    permission: { name, title, dangerous, allowed },
    given,
    onChange
}: {
    readonly permission: Permission;
    readonly given: ReadonlySet<string>;
    readonly onChange: (given: ReadonlySet<string>) => void;
}) {
    const change = (isGiven: boolean): void => {
        const next = new Set(given);
        if (isGiven) {
            next.add(name);
        } else {
            next.delete(name);
        }
        onChange(next);
    };
    return (
        <label class="inline">
            <input
                type="checkbox"
                disabled={!allowed}
                checked={given.has(name)}
                onChange={(event) => change(event.currentTarget.checked)}
            />
            <span class={dangerous ? 'warning' : ''}>
                {title} <small>{allowed ? name : t('You may not do this yourself')}</small>
            </span>
        </label>
    );
}

/** Where the panel says that the client may be told its error; without that, the browser must not go there. */
function BackToClient({ failure }: { readonly failure: ApiFailure | null }) {
    const redirect = failure?.data['redirect'];
    return typeof redirect === 'string' ? (
        <p>
            <Button onPress={() => location.assign(redirect)}>{t('Back to the client')}</Button>
        </p>
    ) : null;
}

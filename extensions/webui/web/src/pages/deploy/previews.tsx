/** Previews of pull requests: what each of them runs, and the approval of code that comes from a fork. */
import { useState } from 'preact/hooks';

import { useMay } from '../../api/queries.ts';
import { type Rows, useRows } from '../../api/rows.ts';
import { Button } from '../../kit/button.tsx';
import { CopyButton } from '../../kit/copy.tsx';
import { confirm } from '../../kit/dialogs/questions.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Badge, Value } from '../../kit/display/value.tsx';
import { t } from '../../words/t.ts';
import { act } from './act.ts';
import { Attempt } from './attempt.tsx';
import { base, previewStates, tones } from './deploy-view.ts';

/** The preview of a pull request, as the API gives it. */
export interface Preview {
    readonly id: number;
    /** Of the pull request. */
    readonly number: number;
    readonly branch: string;
    readonly fork: boolean;
    /** The whole id of its head. */
    readonly commit: string;
    readonly approvedCommit: string | null;
    readonly state: string;
    readonly domain: string;
    /** Its last one; null before the first. */
    readonly deploymentId: number | null;
    readonly expiresAt: string;
}

/** Reads the previews of a project, newest first. @param path - of the project in the API */
export const usePreviews = (path: string): Rows<Preview> =>
    useRows<Preview>(`${path}/previews`, { limit: 30 });

/** The table; nothing where no pull request was previewed. */
export function Previews({ previews }: { readonly previews: Rows<Preview> }) {
    return previews.rows.length === 0 ? null : (
        <section>
            <h2>{t('Previews')}</h2>
            <Table
                caption={t('Previews')}
                rows={previews.rows}
                keyOf={({ id }) => String(id)}
                columns={[
                    {
                        key: 'number',
                        title: t('Pull request'),
                        cell: ({ number, branch, fork }) => (
                            <span>
                                <strong>#{number}</strong> {branch}{' '}
                                {fork ? <span class="tag">{t('fork')}</span> : null}
                            </span>
                        )
                    },
                    {
                        key: 'state',
                        title: t('State'),
                        cell: ({ state }) => (
                            <Badge text={previewStates()[state] ?? state} tone={tones[state]} />
                        )
                    },
                    {
                        key: 'commit',
                        title: t('Commit'),
                        cell: ({ commit }) => (
                            <span>
                                <code title={commit}>{commit.slice(0, 8)}</code> <CopyButton text={commit} />
                            </span>
                        )
                    },
                    { key: 'domain', title: t('Name'), cell: Address },
                    {
                        key: 'expiresAt',
                        title: t('Ends'),
                        cell: ({ state, expiresAt }) => (
                            <Value
                                value={state === 'closed' ? null : expiresAt}
                                schema={{ format: 'date-time' }}
                            />
                        )
                    }
                ]}
                actions={(preview) => <Actions preview={preview} />}
            />
            {previews.more === null ? null : <Button onPress={previews.more}>{t('Show more')}</Button>}
        </section>
    );
}

function Address({ domain, state }: Preview) {
    return state === 'live' ? (
        <a href={`http://${domain}/`} target="_blank" rel="noopener noreferrer">
            {domain}
        </a>
    ) : (
        <span>{domain}</span>
    );
}

function Actions({
    preview: { id, number, fork, commit, approvedCommit, state, deploymentId }
}: {
    readonly preview: Preview;
}) {
    const may = useMay();
    const path = `${base}/previews/${id}`;
    const isOpen = state !== 'closed';
    const [isLooking, setLooking] = useState(false);
    const approve = async (): Promise<void> => {
        const text = t(
            'Code of a fork runs on this machine once you approve it. Look at commit {commit} of pull request #{number} first: exactly this one is built.',
            { commit, number }
        );
        if (await confirm(text, t('Approve'))) {
            await act(path, 'POST', '/approve', t('Approve'), { commit });
        }
    };
    const revoke = async (): Promise<void> => {
        if (await confirm(t('End what runs of this fork?'), t('Revoke'))) {
            await act(path, 'POST', '/revoke', t('Revoke'));
        }
    };
    const close = async (): Promise<void> => {
        if (await confirm(t('End the preview of pull request #{number}?', { number }), t('End'))) {
            await act(path, 'DELETE', '', t('End'));
        }
    };
    const look =
        deploymentId === null || !may('deploy:logs') ? null : (
            <>
                <Button look="quiet" onPress={() => setLooking(true)}>
                    {t('What happened')}
                </Button>
                {isLooking ? (
                    <Attempt id={deploymentId} number={number} onClose={() => setLooking(false)} />
                ) : null}
            </>
        );
    return isOpen ? (
        <div class="row">
            {look}
            {fork && approvedCommit !== commit && may('deploy:approve') ? (
                <Button look="primary" onPress={approve}>
                    {t('Approve …')}
                </Button>
            ) : null}
            {fork && approvedCommit === commit && may('deploy:approve') ? (
                <Button onPress={revoke}>{t('Revoke')}</Button>
            ) : null}
            {may('deploy:write') ? (
                <Button look="danger" onPress={close}>
                    {t('End')}
                </Button>
            ) : null}
        </div>
    ) : (
        look
    );
}

/** The timeline of a project's releases, newest first. */
import { useEffect, useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { invalidate, useMay, useRead } from '../../api/queries.ts';
import { type Rows, useRows } from '../../api/rows.ts';
import { Button } from '../../kit/button.tsx';
import { confirm } from '../../kit/dialogs/questions.tsx';
import { Log } from '../../kit/display/log.tsx';
import { Badge, Value } from '../../kit/display/value.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { quantity } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import { act } from './act.ts';
import { base, type Deployment, isActive, type Project, tones, triggerOf } from './deploy-view.ts';
import { Previews, usePreviews } from './previews.tsx';
import { Steps } from './steps.tsx';
import { Why } from './why.tsx';

/** How often it is read again: while something is under way, and else, as a push may begin something. */
const everyMs = { active: 2_000, idle: 15_000 };

/** Shows the screen of one project. */
export default function ProjectPage({ id }: { readonly id: string }) {
    const path = `${base}/projects/${id}`;
    const may = useMay();
    const { data: project, error } = useRead<Project>(path);
    const deployments = useRows<Deployment>(`${path}/deployments`, { limit: 30 });
    const previews = usePreviews(path);
    const active = deployments.rows.some(isActive) || previews.rows.some(({ state }) => state === 'building');
    useEffect(() => {
        const timer = setInterval(() => void invalidate(path), everyMs[active ? 'active' : 'idle']);
        return () => clearInterval(timer);
    }, [active, path]);
    return (
        <Page
            title={project?.name ?? t('Project')}
            lead={<Link href="/deploy">← {t('Deployments')}</Link>}
            actions={
                may('deploy:run') ? (
                    <>
                        <Button look="primary" onPress={() => act(path, 'POST', '/deployments', t('Deploy'))}>
                            {t('Deploy')}
                        </Button>
                        <Link class="button" href={`/p/deploy?list=deploy.projects&id=${id}`}>
                            {t('All of the project')}
                        </Link>
                    </>
                ) : null
            }
        >
            {project === undefined || deployments.isPending ? (
                <Waiting error={error ?? deployments.error} />
            ) : (
                <>
                    <Previews previews={previews} />
                    <Timeline deployments={deployments} project={project} />
                </>
            )}
        </Page>
    );
}

/** What was deployed, newest first. */
function Timeline({
    deployments,
    project
}: {
    readonly deployments: Rows<Deployment>;
    readonly project: Project;
}) {
    return (
        <>
            {deployments.rows.length === 0 ? (
                <p class="empty">{t('Nothing was deployed yet')}</p>
            ) : (
                <ol class="timeline" aria-label={t('Releases')}>
                    {deployments.rows.map((each) => (
                        <Release key={each.id} deployment={each} project={project} />
                    ))}
                </ol>
            )}
            {deployments.more === null ? null : <Button onPress={deployments.more}>{t('Show more')}</Button>}
        </>
    );
}

function Release({ deployment, project }: { readonly deployment: Deployment; readonly project: Project }) {
    const { number, state, message, commit, ref, author, reason, queuedAt, switchedAt, artifact } =
        deployment;
    const [isOpen, setOpen] = useState(false);
    const may = useMay();
    return (
        <li class={`release ${tones[state] ?? 'neutral'} ${deployment.id === project.live ? 'live' : ''}`}>
            <article class="card">
                <header class="row spread">
                    <h2>
                        <span class="number">#{number}</span> {firstLine(message) ?? triggerOf(deployment)}
                    </h2>
                    <Badge text={state} tone={tones[state]} />
                </header>
                <p class="dim row">
                    {commit === null ? null : <code>{commit.slice(0, 8)}</code>}
                    {ref === null ? null : <span>{ref.replace(/^refs\/(heads|tags)\//, '')}</span>}
                    {author === null || author === '' ? null : <span>{author}</span>}
                    <span>{triggerOf(deployment)}</span>
                    <Value value={switchedAt ?? queuedAt} schema={{ format: 'date-time' }} />
                    {artifact === null ? null : (
                        <span class="number">{quantity(artifact.bytes, 'byte')}</span>
                    )}
                </p>
                <Why reason={reason} />
                <Steps steps={deployment.steps} />
                <footer class="row">
                    {may('deploy:logs') ? (
                        <Button look="quiet" onPress={() => setOpen(!isOpen)}>
                            {isOpen ? t('Close the log') : t('Show the log')}
                        </Button>
                    ) : null}
                    {may('deploy:run') ? <Actions deployment={deployment} project={project} /> : null}
                </footer>
                {isOpen ? (
                    <Log
                        path={`${base}/deployments/${deployment.id}/log`}
                        title={t('Log of #{number}', { number })}
                    />
                ) : null}
            </article>
        </li>
    );
}

function Actions({ deployment, project }: { readonly deployment: Deployment; readonly project: Project }) {
    const { id, number, state, kept } = deployment;
    const path = `${base}/projects/${project.id}`;
    const goBack = async (): Promise<void> => {
        if (await confirm(t('Serve release #{number} again?', { number }), t('Go back to it'))) {
            await act(path, 'POST', '/rollback', t('Go back to it'), { deployment: id });
        }
    };
    if (state === 'canary') {
        return (
            <>
                <Button
                    look="primary"
                    onPress={() => act(path, 'POST', '/canary/promote', t('Give it all requests'))}
                >
                    {t('Give it all requests')}
                </Button>
                <Button onPress={() => act(path, 'POST', '/canary/abort', t('Take it back'))}>
                    {t('Take it back')}
                </Button>
            </>
        );
    }
    return (
        <>
            {isActive(deployment) ? (
                <Button onPress={() => act(`${base}/deployments/${id}`, 'POST', '/cancel', t('Cancel'))}>
                    {t('Cancel')}
                </Button>
            ) : null}
            {kept && state === 'retired' ? <Button onPress={goBack}>{t('Go back to it …')}</Button> : null}
        </>
    );
}

const firstLine = (message: string | null): string | null => message?.split('\n')[0]?.trim() || null;

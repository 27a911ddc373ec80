/** One container: its state and figures, its log as it is written, and a terminal in it. */
import { useEffect } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { invalidate, useMay, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { Log } from '../../kit/display/log.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { Tabs, useTab } from '../../kit/tabs.tsx';
import { t } from '../../words/t.ts';
import { act, actionsOf, base, type Container, portText } from './container-view.ts';
import { State } from './containers.tsx';
import { Figures } from './figures.tsx';
import { Shell } from './shell.tsx';

const againMs = 3_000;

/** Shows the screen of one container. */
export default function ContainerPage({ id }: { readonly id: string }) {
    const path = `${base}/containers/${encodeURIComponent(id)}`;
    const { data, error } = useRead<Container>(path);
    const may = useMay();
    useEffect(() => {
        const timer = setInterval(() => void invalidate(path), againMs);
        return () => clearInterval(timer);
    }, [path]);
    const isRunning = data?.state === 'running';
    const tabs = [
        { id: 'figures', title: t('Figures') },
        ...(may('container:logs') ? [{ id: 'log', title: t('Log') }] : []),
        ...(may('container:exec') && isRunning ? [{ id: 'terminal', title: t('Terminal') }] : [])
    ];
    const tab = useTab(tabs);
    return (
        <Page
            title={data?.name ?? t('Container')}
            lead={<Link href="/containers">← {t('Containers')}</Link>}
            actions={data === undefined ? null : <Actions container={data} />}
        >
            {data === undefined ? (
                <Waiting error={error} />
            ) : (
                <>
                    <Facts container={data} />
                    <Tabs label={data.name} tabs={tabs} />
                    {tab === 'figures' ? (
                        isRunning ? (
                            <Figures path={`${path}/stats`} />
                        ) : (
                            <p class="empty">{t('There are figures while it runs')}</p>
                        )
                    ) : null}
                    {tab === 'log' ? (
                        <Log path={`${path}/logs?tail=500`} title={t('Log of {name}', { name: data.name })} />
                    ) : null}
                    {tab === 'terminal' ? <Shell path={path} name={data.name} /> : null}
                </>
            )}
        </Page>
    );
}

function Actions({ container }: { readonly container: Container }) {
    const may = useMay();
    return (
        <>
            {may('container:control')
                ? actionsOf(container).map((each) => (
                      <Button key={each.path} onPress={() => act(container.id, each)}>
                          {each.title}
                      </Button>
                  ))
                : null}
            <Link
                class="button"
                href={`/p/container?list=container.containers&id=${encodeURIComponent(container.id)}`}
            >
                {t('All of the container')}
            </Link>
        </>
    );
}

function Facts({ container }: { readonly container: Container }) {
    const { image, ports, stack, service, owner } = container;
    const facts: readonly (readonly [string, string | null])[] = [
        [t('Image'), image],
        [t('Ports'), ports.map(portText).join(', ')],
        [t('Stack'), stack],
        [t('Service'), service],
        [t('Made by the plugin'), owner]
    ];
    return (
        <section class="card">
            <dl class="facts">
                <div>
                    <dt>{t('State')}</dt>
                    <dd>
                        <State container={container} />
                    </dd>
                </div>
                {facts
                    .filter(([, value]) => value !== null && value !== '')
                    .map(([title, value]) => (
                        <div key={title}>
                            <dt>{title}</dt>
                            <dd>{value}</dd>
                        </div>
                    ))}
            </dl>
        </section>
    );
}

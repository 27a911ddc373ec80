/** What surrounds every screen: the navigation, the drawer of tasks, questions and toasts. */
import { lazy, Suspense } from 'preact/compat';
import { useEffect, useState } from 'preact/hooks';
import { Link, Route, Switch, useLocation } from 'wouter-preact';

import { needsTotp, onSessionEnd, onStepUp } from '../api/client.ts';
import { followPanel, isReached } from '../api/live.ts';
import { invalidate, useRead } from '../api/queries.ts';
import type { Me } from '../api/session/login.ts';
import { Button } from '../kit/button.tsx';
import { askToStepUp } from '../kit/dialogs/questions.tsx';
import { Icon } from '../kit/icon.tsx';
import { Page, Waiting } from '../kit/page.tsx';
import { useStore } from '../kit/store.ts';
import { ForcedPassword } from '../pages/account/password.tsx';
import { ForcedTotp } from '../pages/account/totp.tsx';
import { askToLogIn } from '../pages/login/session-end.tsx';
import { t } from '../words/t.ts';
import { Navigation } from './navigation.tsx';
import { TaskDrawer } from './tasks.tsx';

/** A screen that is loaded when it is first shown. Its file may be gone: after an upgrade of the pages, and in safe mode. */
const screen = <Shown,>(load: () => Promise<{ default: Shown }>) =>
    lazy<Shown | typeof Unloaded>(() => load().catch(() => ({ default: Unloaded })));

function Unloaded() {
    return (
        <Page title={t('This screen could not be loaded')}>
            <p>{t('The panel was changed since you opened it, or it serves no pages now.')}</p>
            <p>
                <Button look="primary" onPress={() => location.reload()}>
                    {t('Load the panel anew')}
                </Button>
            </p>
        </Page>
    );
}

const Dashboard = screen(() => import('../pages/dashboard/dashboard.tsx'));
const Hosts = screen(() => import('../pages/hosts/hosts.tsx'));
const Host = screen(() => import('../pages/hosts/host.tsx'));
const Certificates = screen(() => import('../pages/certificates/certificates.tsx'));
const Certificate = screen(() => import('../pages/certificates/certificate.tsx'));
const Engine = screen(() => import('../pages/engine/engine.tsx'));
const Users = screen(() => import('../pages/users/users.tsx'));
const Audit = screen(() => import('../pages/audit/audit.tsx'));
const Tasks = screen(() => import('../pages/tasks/tasks.tsx'));
const Notifications = screen(() => import('../pages/notifications/notifications.tsx'));
const Exchange = screen(() => import('../pages/exchange/exchange.tsx'));
const Monitoring = screen(() => import('../pages/monitoring/monitoring.tsx'));
const Backup = screen(() => import('../pages/backup/backup.tsx'));
const Deploy = screen(() => import('../pages/deploy/deploy.tsx'));
const DeployProject = screen(() => import('../pages/deploy/project.tsx'));
const Databases = screen(() => import('../pages/database/databases.tsx'));
const DatabaseServer = screen(() => import('../pages/database/server.tsx'));
const Containers = screen(() => import('../pages/containers/containers.tsx'));
const Container = screen(() => import('../pages/containers/container.tsx'));
const AppStore = screen(() => import('../pages/appstore/appstore.tsx'));
const App = screen(() => import('../pages/appstore/app.tsx'));
const Agents = screen(() => import('../pages/agents/agents.tsx'));
const Assistant = screen(() => import('../pages/assistant/assistant.tsx'));
const DnsProviders = screen(() => import('../pages/dns/dns-providers.tsx'));
const Plugins = screen(() => import('../pages/plugins/plugins.tsx'));
const Plugin = screen(() => import('../pages/plugins/plugin.tsx'));
const Settings = screen(() => import('../pages/settings/settings.tsx'));
const Account = screen(() => import('../pages/account/account.tsx'));
const Authorize = screen(() => import('../pages/oauth/authorize.tsx'));
const BroughtPage = screen(() => import('../pages/frame/frame.tsx'));
const Palette = screen(() => import('./palette.tsx'));
const Generated = screen(() => import('../generated/page.tsx'));

/** The screens of a user who is logged in. */
export function Shell() {
    const { data: me, error } = useRead<Me>('/api/auth/me');
    const isTotpNeeded = useStore(needsTotp);
    useEffect(() => {
        onStepUp(askToStepUp);
        onSessionEnd(askToLogIn);
        return followPanel();
    }, []);
    if (me?.mustChangePassword === true || error?.reason === 'PASSWORD_CHANGE_REQUIRED') {
        return <ForcedPassword />;
    }
    if (isTotpNeeded) {
        const done = (): void => {
            needsTotp.set(false);
            void invalidate('/api');
        };
        return <ForcedTotp onDone={done} />;
    }
    if (me === undefined) {
        return <Waiting error={error} />;
    }
    return <Frame />;
}

/** Says that the panel is away, as while it starts anew. What is shown stays. */
function Away() {
    return useStore(isReached) ? null : (
        <p class="away" role="status">
            {t('The panel does not answer. The pages go on as soon as it does.')}
        </p>
    );
}

/** The screen that the address names. */
function Screens() {
    return (
        <Suspense fallback={<Waiting error={null} />}>
            <Switch>
                <Route path="/" component={Dashboard} />
                <Route path="/hosts" component={Hosts} />
                <Route path="/hosts/:id">{({ id }: { id: string }) => <Host key={id} id={id} />}</Route>
                <Route path="/certificates" component={Certificates} />
                <Route path="/certificates/:id">
                    {({ id }: { id: string }) => <Certificate key={id} id={id} />}
                </Route>
                <Route path="/engine" component={Engine} />
                <Route path="/users" component={Users} />
                <Route path="/audit" component={Audit} />
                <Route path="/tasks" component={Tasks} />
                <Route path="/notifications" component={Notifications} />
                <Route path="/exchange" component={Exchange} />
                <Route path="/monitoring" component={Monitoring} />
                <Route path="/backup" component={Backup} />
                <Route path="/deploy" component={Deploy} />
                <Route path="/deploy/:id">
                    {({ id }: { id: string }) => <DeployProject key={id} id={id} />}
                </Route>
                <Route path="/containers" component={Containers} />
                <Route path="/containers/:id">
                    {({ id }: { id: string }) => <Container key={id} id={id} />}
                </Route>
                <Route path="/database" component={Databases} />
                <Route path="/database/:id">
                    {({ id }: { id: string }) => <DatabaseServer key={id} id={id} />}
                </Route>
                <Route path="/appstore" component={AppStore} />
                <Route path="/appstore/app" component={App} />
                <Route path="/agents" component={Agents} />
                <Route path="/assistant" component={Assistant} />
                <Route path="/dns-providers" component={DnsProviders} />
                <Route path="/plugins" component={Plugins} />
                <Route path="/plugins/:name">
                    {({ name }: { name: string }) => <Plugin key={name} name={name} />}
                </Route>
                <Route path="/settings" component={Settings} />
                <Route path="/account" component={Account} />
                <Route path="/oauth/authorize" component={Authorize} />
                <Route path="/p/:plugin/:id">
                    {({ plugin, id }: { plugin: string; id: string }) => (
                        <BroughtPage key={`${plugin} ${id}`} plugin={plugin} id={id} />
                    )}
                </Route>
                <Route path="/p/:tag">
                    {({ tag }: { tag: string }) => <Generated key={tag} tag={tag} />}
                </Route>
                <Route>
                    <Page title={t('There is no such page')}>
                        <p>{t('The address may be old. The menu has everything.')}</p>
                    </Page>
                </Route>
            </Switch>
        </Suspense>
    );
}

function Frame() {
    const [isOpen, setOpen] = useState(false);
    const [location] = useLocation();
    const [isPalette, setPalette] = useState(false);
    useEffect(() => setOpen(false), [location]);
    useEffect(() => {
        const press = (event: KeyboardEvent): void => {
            if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
                event.preventDefault();
                setPalette(true);
            }
        };
        addEventListener('keydown', press);
        return () => removeEventListener('keydown', press);
    }, []);
    return (
        <div class={`frame ${isOpen ? 'open' : ''}`}>
            <a class="skip" href="#main">
                {t('Skip to the content')}
            </a>
            <header class="topbar">
                <Link class="brand" href="/">
                    <img src="/favicon.svg" alt="" width="24" height="24" /> Portico
                </Link>
                <Button look="quiet" label={t('Menu')} onPress={() => setOpen(!isOpen)}>
                    <Icon name={isOpen ? 'close' : 'menu'} />
                </Button>
            </header>
            <Navigation />
            <Away />
            <Screens />
            <TaskDrawer />
            {isPalette ? (
                <Suspense fallback={null}>
                    <Palette onClose={() => setPalette(false)} />
                </Suspense>
            ) : null}
        </div>
    );
}

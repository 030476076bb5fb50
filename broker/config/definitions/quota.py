"""The windows over which quotas are measured. Quotas themselves are not settings: clients alter them."""

from barnabas.broker.config.setting import integer


class QuotaSettings:
    quota_window_num = integer(11, "How many samples of a client's usage are kept.", at_least=1)
    quota_window_size_seconds = integer(1, "How long each of these samples is.", at_least=1)
    controller_quota_window_num = integer(
        11, "How many samples' worth of topics a client may create at once.", at_least=1
    )
    controller_quota_window_size_seconds = integer(1, "How long each of these samples is.", at_least=1)

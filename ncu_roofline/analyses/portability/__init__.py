"""Performance portability: how much of what each platform can give an application gets."""
